/** curl. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { reportsWithout, startDemo, takeSteps, UPLOAD_BYTES } from '#test/support/clients/demo.ts';
import { outputOf } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
writeFileSync(join(folder, 'upload'), 'u'.repeat(UPLOAD_BYTES));
const demo = await startDemo(t);

const curl = (...args: readonly string[]): Promise<string> =>
  outputOf(['curl', '-sS', '--expect100-timeout', '600', ...args], { cwd: folder });
const TYPE = ['-H', 'Content-Type: application/octet-stream'];
const FILE = [...TYPE, '--data-binary', '@upload'];

/** Returns status and body of the last reply. */
async function text(...args: readonly string[]): Promise<string> {
  return (await curl('-w', '\n%{http_code}', ...args)).replace(/^([\s\S]*)\n(\d+)$/, '$2 $1');
}

/** Returns status, fields and body of one reply. */
async function whole(...args: readonly string[]): Promise<(name: string) => string> {
  const reply = await curl('-i', ...args);
  const end = reply.indexOf('\r\n\r\n');
  const lines = reply.slice(0, end).split('\r\n');
  return (name) => {
    if (name === 'status') return lines[0]?.split(' ')[1] ?? '';
    if (name === 'body') return reply.slice(end + 4);
    return lines.find((line) => line.toLowerCase().startsWith(`${name}: `))?.slice(name.length + 2) ?? 'none';
  };
}

async function downloaded(url: string): Promise<string> {
  const reply = await text(url);
  return `${reply.slice(0, 3)} ${reply.length - 4} ${reply.slice(-3)}`;
}

async function steps(origin: string): Promise<unknown> {
  const head = await whole('--head', `${origin}/download/length`);
  const none = await whole('-X', 'DELETE', `${origin}/none`);
  const tag = (await whole(`${origin}/tagged`))('etag');
  const known = await whole('-H', `If-None-Match: ${tag}`, `${origin}/tagged`);
  const range = await whole('-r', '5-9', `${origin}/range`);
  const busy = await whole(`${origin}/busy`);
  const three = ['/echo', '/none', '/echo'].flatMap((path) => ['-o', '/dev/null', `${origin}${path}`]);
  const connections = await curl('-w', '%{num_connects}', ...three);
  const events = await curl('-N', `${origin}/events?end`);
  return {
    get: await text(`${origin}/echo?q=1`),
    encoded: await text(`${origin}/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y`),
    redirect: await text('-L', `${origin}/redirect?status=302&to=/folder`),
    'redirect 307': await text(
      '-L',
      '-X',
      'PUT',
      '-H',
      'Expect:',
      ...FILE,
      `${origin}/redirect?status=307&to=/upload`,
    ),
    cookies: await text('-L', '-b', '', `${origin}/cookies/set`),
    upload: await text('-H', 'Expect:', ...FILE, `${origin}/upload`),
    'upload chunked': await text(
      '-H',
      'Expect:',
      '-H',
      'Transfer-Encoding: chunked',
      ...FILE,
      `${origin}/upload`,
    ),
    expect: await text('-H', 'Expect: 100-continue', ...FILE, `${origin}/upload`),
    'download length': await downloaded(`${origin}/download/length`),
    'download chunked': await downloaded(`${origin}/download/chunked`),
    head: `${head('status')} ${head('content-length')} ${head('body').length}`,
    'no content': `${none('status')} ${none('body').length}`,
    'not modified': `${known('status')} ${known('etag')} ${known('body').length}`,
    range: `${range('status')} ${range('content-range')} ${range('body')}`,
    gzip: await text('--compressed', `${origin}/gzip`),
    refused: await text('-H', 'Expect: 100-continue', ...FILE, `${origin}/refuse`),
    busy: `${busy('status')} ${busy('retry-after')} ${busy('body')}`,
    'keep-alive': `3 requests, ${connections.replaceAll('0', '')} connection`,
    events: [...events.matchAll(/^data: (.*)$/gm)].map(([, name]) => name).join(' '),
  };
}

t.test('curl', async (t) => {
  await takeSteps(t, demo, reportsWithout(['websocket']), steps);
});
