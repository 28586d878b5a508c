/** A PHP application that routes by PATH_INFO, sends people to the right spelling of a path, and takes uploads. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { ask, follow, startNeighbour } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
mkdirSync(join(folder, 'wiki'));
writeFileSync(
  join(folder, 'wiki/index.php'),
  `<?php
// As wikis do, it knows one spelling of the address of a page, and redirects from all others.
$path = parse_url('http://any' . $_SERVER['REQUEST_URI'], PHP_URL_PATH);
if ($path === '/wiki/index.php') {
  header('Location: http://' . $_SERVER['HTTP_HOST'] . '/wiki/index.php/', true, 301);
  exit;
}
setcookie('one', 'a', ['samesite' => 'Lax']);
setcookie('two', 'b c');
header('Content-Type: application/json');
echo json_encode([
  'method' => $_SERVER['REQUEST_METHOD'],
  'uri' => $_SERVER['REQUEST_URI'],
  'path' => $_SERVER['PATH_INFO'] ?? null,
  'query' => $_GET,
  'form' => $_POST,
  'files' => array_map(fn ($file) => [$file['name'], $file['size'], sha1_file($file['tmp_name'])], $_FILES),
  'cookies' => $_COOKIE,
]);
`,
);
const neighbour = await startNeighbour(t, {
  cwd: folder,
  command: (port) => ['php', '-S', `127.0.0.1:${port}`, '-t', folder],
});

t.test('the path of a page, with and without its slash', async (t) => {
  const replies = await neighbour.same(t, 'follows', (way) => follow(way, '/wiki/index.php'));
  t.match(replies, [{ status: 301 }, { status: 200 }]);
  for (const path of [
    '/wiki/index.php/Start',
    '/wiki/index.php/a%2Fb',
    '/wiki/index.php/100%25',
    '/wiki/index.php/a%7Eb/',
  ])
    t.match(await neighbour.same(t, path, (way) => ask(way, path)), {
      status: 200,
      body: path.replaceAll('/', '\\/'),
    });
});

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
