/** NGINX as the application, which serves files. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { nginxCommand } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'site/docs/list'), { recursive: true });
writeFileSync(join(folder, 'site/docs/index.html'), '<h1>Docs</h1>\n');
writeFileSync(join(folder, 'site/docs/half.txt'), 'half\n');
writeFileSync(join(folder, 'site/docs/list/half.txt'), 'half\n');
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) =>
    nginxCommand(
      folder,
      `server { listen 127.0.0.1:${port}; root site; autoindex on; types { text/plain txt; } }`,
    ),
});

t.test('files, ranges and conditional requests', async (t) => {
  const path = '/docs/half.txt';
  const reply = await neighbour.same(t, 'a file', (way) => ask(way, path));
  t.match(reply, { status: 200, body: 'half\n' });
  const headers = { 'if-none-match': String(reply.headers.etag) };
  t.equal((await neighbour.same(t, 'not modified', (way) => ask(way, path, { headers }))).status, 304);
  const range = await neighbour.same(t, 'a range', (way) =>
    ask(way, path, { headers: { range: 'bytes=1-2' } }),
  );
  t.match(range, { status: 206, body: 'al', headers: { 'content-range': 'bytes 1-2/5' } });
  t.equal((await neighbour.same(t, 'HEAD', (way) => ask(way, path, { method: 'HEAD' }))).status, 200);
  t.equal((await neighbour.same(t, 'no file', (way) => ask(way, '/none'))).status, 404);
});

/** NGINX takes the host of a redirect from the request, and the port from the socket on which it listens. */
t.test('a redirect does not lead past the gateway', async (t) => {
  const [, through] = neighbour.ways;
  const headers = { host: 'example.org:8443' };
  for (const path of ['/docs', '/docs/list?a=1']) {
    const { status, headers: got } = await ask(through, path, { headers });
    const [folder = '', query] = path.split('?');
    t.strictSame([status, got.location], [301, [`${folder}/`, query].filter(Boolean).join('?')]);
  }
});

t.test('a folder without its slash, and its list', async (t) => {
  t.match((await follow(neighbour.ways[1], '/docs')).at(-1), { status: 200, body: '<h1>Docs</h1>\n' });
  t.match((await follow(neighbour.ways[1], '/docs/list')).at(-1), { status: 200, body: 'half.txt' });
});
