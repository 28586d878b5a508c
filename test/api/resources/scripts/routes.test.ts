/** GET /js/{script}: the scripts of SDKs. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const script = '/js/formbricks.umd.cjs';

t.test('404 without a folder, and for other files', async (t) => {
  const bare = await startApi(t);
  const reply = await bare.client('GET', script);
  t.match(reply, { status: 404, json: { code: 'not_found' } });
  t.equal(reply.headers['access-control-allow-origin'], '*');
});

t.test('serves the two scripts of a folder, and nothing else', async (t) => {
  const folder = temporaryFolder(t);
  const text = `/* ${'x'.repeat(5000)} */`;
  writeFileSync(join(folder, 'formbricks.umd.cjs'), text);
  await t.rejects(startApi(t, { env: { SDK_PATH: folder } }), {
    name: 'ConfigError',
    problems: [/^SDK_PATH: .*surveys\.umd\.cjs/],
  });
  for (const name of ['surveys.umd.cjs', 'notes.txt', 'other.js']) writeFileSync(join(folder, name), 'other');
  const api = await startApi(t, { env: { SDK_PATH: folder } });
  const get = (name: string, headers: Record<string, string> = {}) =>
    api.client('GET', `/js/${name}`, undefined, headers);

  const whole = await get('formbricks.umd.cjs');
  t.match(whole, { status: 200, text });
  t.match(whole.headers, {
    'content-type': 'text/javascript; charset=utf-8',
    'content-length': String(text.length),
    'access-control-allow-origin': '*',
    'cache-control': /^public, max-age=3600, s-maxage=2592000/,
    'x-content-type-options': 'nosniff',
    vary: undefined,
    etag: /^"[\w-]{43}"$/,
  });
  t.equal((await get('surveys.umd.cjs')).text, 'other');
  const head = await api.client('HEAD', script);
  t.match(head, { status: 200, text: '', headers: { etag: whole.headers.etag } });

  for (const known of [String(whole.headers.etag), `W/${whole.headers.etag}`]) {
    const unchanged = await get('formbricks.umd.cjs', { 'if-none-match': known });
    t.match(unchanged, { status: 304, text: '', headers: { etag: whole.headers.etag } });
  }
  t.equal((await get('formbricks.umd.cjs', { 'if-none-match': '"other"' })).status, 200);
  for (const name of [
    'notes.txt',
    'other.js',
    '..%2foutside.js',
    '%2e%2e%2foutside.js',
    'x'.repeat(300),
    '',
  ]) {
    t.equal((await get(name)).status, 404, name);
  }
});
