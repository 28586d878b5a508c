/** Chromium: fetch, a form with a file, cookies, EventSource, WebSocket. */
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { reportsWithout, startDemo, takeSteps, UPLOAD_BYTES } from '#test/support/clients/demo.ts';

const demo = await startDemo(t);
const browser = await startBrowser(t);

/** Runs in the page. */
async function inPage([origin, bytes]: readonly [string, number]): Promise<Record<string, string>> {
  const text = async (url: string, options: RequestInit = {}): Promise<string> => {
    const reply = await fetch(origin + url, options);
    return `${reply.status} ${await reply.text()}`;
  };
  const downloaded = async (url: string): Promise<string> => {
    const reply = await fetch(origin + url);
    const got = await reply.text();
    return `${reply.status} ${got.length} ${got.slice(-3)}`;
  };
  const events = await new Promise<string>((resolve) => {
    const source = new EventSource('/events');
    const names: string[] = [];
    source.onmessage = ({ data }) => {
      names.push(data);
      if (names.length < 3) return;
      source.close();
      resolve(names.join(' '));
    };
  });
  const websocket = await new Promise<string>((resolve, reject) => {
    const socket = new WebSocket(`${origin.replace('http:', 'ws:')}/ws`);
    socket.onopen = () => socket.send('hello');
    socket.onerror = () => reject(new Error('the WebSocket failed'));
    socket.onmessage = ({ data }) => {
      socket.onclose = () => resolve(`echo of ${data}`);
      socket.close();
    };
  });
  const body = 'u'.repeat(bytes);
  const head = await fetch('/download/length', { method: 'HEAD' });
  const none = await fetch('/none', { method: 'DELETE' });
  const tag = (await fetch('/tagged')).headers.get('etag') ?? '';
  const known = await fetch('/tagged', { headers: { 'if-none-match': tag }, cache: 'no-store' });
  const range = await fetch('/range', { headers: { range: 'bytes=5-9' } });
  const busy = await fetch('/busy');
  return {
    get: await text('/echo?q=1'),
    encoded: await text('/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y'),
    redirect: await text('/redirect?status=302&to=/folder'),
    'redirect 307': await text('/redirect?status=307&to=/upload', { method: 'PUT', body }),
    cookies: await text('/cookies/set'),
    upload: await text('/upload', { method: 'POST', body }),
    'download length': await downloaded('/download/length'),
    'download chunked': await downloaded('/download/chunked'),
    head: `${head.status} ${head.headers.get('content-length')} ${(await head.text()).length}`,
    'no content': `${none.status} ${(await none.text()).length}`,
    'not modified': `${known.status} ${known.headers.get('etag')} ${(await known.text()).length}`,
    range: `${range.status} ${range.headers.get('content-range')} ${await range.text()}`,
    gzip: await text('/gzip'),
    refused: await text('/refuse', { method: 'POST', body }),
    busy: `${busy.status} ${busy.headers.get('retry-after')} ${await busy.text()}`,
    events,
    websocket,
  };
}

t.test('fetch, EventSource and WebSocket', async (t) => {
  const without = ['upload chunked', 'expect', 'keep-alive'] as const;
  await takeSteps(t, demo, reportsWithout(without), async (origin) => {
    const page = await browser.newPage();
    await page.goto(`${origin}/page`);
    return page.evaluate(inPage, [origin, UPLOAD_BYTES] as const);
  });
});

t.test('a form with a file', async (t) => {
  const shown = await demo.same(t, 'the page after it', async ({ origin }) => {
    const page = await browser.newPage();
    await page.goto(`${origin}/page`);
    const buffer = Buffer.alloc(UPLOAD_BYTES, 'u');
    await page.setInputFiles('input', { name: 'u.txt', mimeType: 'text/plain', buffer });
    await page.click('button');
    await page.waitForURL(`${origin}/upload`);
    return (await page.textContent('body'))?.replace(/ \w+$/, '') ?? '';
  });
  const [, bytes = ''] = /^POST length (\d+)$/.exec(shown) ?? [];
  t.ok(Number(bytes) > UPLOAD_BYTES, shown);
});
