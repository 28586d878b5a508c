/** Takes the steps of demo.ts with fetch and WebSocket of Node.js. Argument: the origin. */
import { channel } from 'node:diagnostics_channel';

const [, , origin] = process.argv;
const BYTES = 200_000;
const BODY = 'u'.repeat(BYTES);
/** Nobody reports how it goes on to read a body that is sent in pieces. */
const pieces = () => ReadableStream.from(Array.from({ length: 10 }, () => Buffer.alloc(BYTES / 10, 'u')));

async function text(reply) {
  const got = await reply;
  return `${got.status} ${await got.text()}`;
}

async function downloaded(url) {
  const reply = await fetch(url);
  const got = await reply.text();
  return `${reply.status} ${got.length} ${got.slice(-3)}`;
}

async function eventsOf(url) {
  const leaving = new AbortController();
  const { body } = await fetch(url, { signal: leaving.signal });
  let got = '';
  const decoder = new TextDecoder();
  for await (const chunk of body ?? []) {
    got += decoder.decode(chunk, { stream: true });
    if (got.endsWith('three\n\n')) break;
  }
  leaving.abort();
  return [...got.matchAll(/^data: (.*)$/gm)].map(([, name]) => name).join(' ');
}

function echoOf(origin) {
  const socket = new WebSocket(`${origin.replace('http:', 'ws:')}/ws`);
  return new Promise((resolve, reject) => {
    socket.onopen = () => socket.send('hello');
    socket.onerror = () => reject(new Error('the WebSocket failed'));
    socket.onmessage = ({ data }) => {
      socket.onclose = () => resolve(`echo of ${data}`);
      socket.close();
    };
  });
}

/** fetch opens a connection only if none is free. */
async function connectionsFor(url, count) {
  let connections = 0;
  const onConnected = () => void connections++;
  await text(fetch(url));
  channel('undici:client:connected').subscribe(onConnected);
  for (let i = 1; i < count; i++) await text(fetch(url));
  channel('undici:client:connected').unsubscribe(onConnected);
  return `${count} requests, ${connections + 1} connection`;
}

async function steps() {
  const post = { method: 'POST', body: BODY };
  const head = await fetch(`${origin}/download/length`, { method: 'HEAD' });
  const none = await fetch(`${origin}/none`, { method: 'DELETE' });
  const tag = (await fetch(`${origin}/tagged`)).headers.get('etag') ?? '';
  const known = await fetch(`${origin}/tagged`, { headers: { 'if-none-match': tag } });
  const range = await fetch(`${origin}/range`, { headers: { range: 'bytes=5-9' } });
  const busy = await fetch(`${origin}/busy`);
  return {
    get: await text(fetch(`${origin}/echo?q=1`)),
    encoded: await text(fetch(`${origin}/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y`)),
    redirect: await text(fetch(`${origin}/redirect?status=302&to=/folder`)),
    'redirect 307': await text(fetch(`${origin}/redirect?status=307&to=/upload`, { ...post, method: 'PUT' })),
    upload: await text(fetch(`${origin}/upload`, post)),
    'upload chunked': await text(
      fetch(`${origin}/upload`, { method: 'POST', body: pieces(), duplex: 'half' }),
    ),
    'download length': await downloaded(`${origin}/download/length`),
    'download chunked': await downloaded(`${origin}/download/chunked`),
    head: `${head.status} ${head.headers.get('content-length')} ${(await head.text()).length}`,
    'no content': `${none.status} ${(await none.text()).length}`,
    'not modified': `${known.status} ${known.headers.get('etag')} ${(await known.text()).length}`,
    range: `${range.status} ${range.headers.get('content-range')} ${await range.text()}`,
    gzip: await text(fetch(`${origin}/gzip`)),
    refused: await text(fetch(`${origin}/refuse`, post)),
    busy: `${busy.status} ${busy.headers.get('retry-after')} ${await busy.text()}`,
    'keep-alive': await connectionsFor(`${origin}/echo`, 3),
    events: await eventsOf(`${origin}/events`),
    websocket: await echoOf(origin),
  };
}

console.log(JSON.stringify(await steps()));
