/** A PHP application that routes by PATH_INFO, sends people to the right spelling of a path, and takes uploads. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, askForPage, copyProgram, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'wiki'));
copyProgram('wiki.php', join(folder, 'wiki/index.php'));
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['php', '-S', `127.0.0.1:${port}`, '-t', folder],
});

askForPage(t, neighbour, 'PHP');

t.test('queries, cookies, a form and an upload', async (t) => {
  const headers = { cookie: 'c=1; d=a%20b' };
  await neighbour.same(t, 'arrays', (way) =>
    ask(way, '/wiki/index.php/q?a[]=1&a[]=2&b[x]=3&c=%2F', { headers }),
  );
  const form = { ...headers, 'content-type': 'application/x-www-form-urlencoded' };
  const posted = { method: 'POST', headers: form, body: 'name=G%C3%BCnter&tags[]=a&tags[]=b' };
  t.match(await neighbour.same(t, 'form', (way) => ask(way, '/wiki/index.php/f', posted)), {
    body: '"tags":["a","b"]',
  });
  const content = Buffer.alloc(300_000, 'bytes of a picture ');
  const body = Buffer.concat([
    Buffer.from('--x\r\nContent-Disposition: form-data; name="f"; filename="a b.png"\r\n\r\n'),
    content,
    Buffer.from('\r\n--x--\r\n'),
  ]);
  const upload = { method: 'POST', headers: { 'content-type': 'multipart/form-data; boundary=x' }, body };
  const { body: stored } = await neighbour.same(t, 'upload', (way) => ask(way, '/wiki/index.php/u', upload));
  t.match(stored, '"files":{"f":["a b.png",300000,');
});
