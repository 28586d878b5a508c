/** Tests the files of the page: their headers, and that they load nothing from elsewhere. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { baseStyle } from '#shared/page.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';

const FOLDER = join(projectRoot, 'gateway/operate/admin/page');

t.test('serves each file with its type, a content security policy, and an ETag', async (t) => {
  const gateway = await startTestGateway(t);
  const admin = await startTestAdmin(t, gateway, { token: 'a secret' });
  const page = await fetch(`${admin}/`);
  t.equal(page.status, 200, 'the page itself needs no token');
  t.equal(page.headers.get('content-type'), 'text/html; charset=utf-8');
  const policy = page.headers.get('content-security-policy') ?? '';
  t.match(policy, /default-src 'none'/);
  t.match(policy, /frame-ancestors 'none'/);
  t.notMatch(policy, /unsafe|\*|data:|https?:/);
  t.equal(page.headers.get('x-content-type-options'), 'nosniff');
  t.equal(page.headers.get('referrer-policy'), 'no-referrer');
  const etag = page.headers.get('etag') ?? '';
  t.equal((await fetch(`${admin}/`, { headers: { 'if-none-match': etag } })).status, 304);
  for (const name of readdirSync(FOLDER).filter((name) => !name.endsWith('.json'))) {
    const reply = await fetch(`${admin}/page/${name}`);
    t.equal(reply.status, 200, name);
    const shared = name.endsWith('.css') ? baseStyle : '';
    t.equal(await reply.text(), shared + readFileSync(join(FOLDER, name), 'utf8'));
  }
  t.equal((await fetch(`${admin}/page/style.css`)).headers.get('content-type'), 'text/css; charset=utf-8');
  for (const path of ['/page/none.js', '/page/..%2fguard.ts', '/page/%2e%2e%2f%2e%2e%2fadmin.ts', '/page/'])
    t.equal((await fetch(admin + path)).status, 404, path);
  t.match(await (await fetch(`${admin}/nowhere`)).json(), { message: /a page at \// });
});

t.test('loads nothing from elsewhere, and text never becomes markup', async (t) => {
  for (const name of readdirSync(FOLDER)) {
    const text = readFileSync(join(FOLDER, name), 'utf8').replaceAll('http://www.w3.org/2000/svg', '');
    t.notMatch(text, /https?:\/\//, name);
    t.notMatch(text, /innerHTML|outerHTML|insertAdjacentHTML|document\.write|\beval\(|style="/, name);
  }
});
