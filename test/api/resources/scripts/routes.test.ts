/** GET /js/{script}: the scripts of SDKs. */
import { mkdirSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import vm from 'node:vm';
import t from 'tap';
import { loadSdkScripts } from '#api/cache/sdk-scripts.ts';
import { startApi } from '#test/support/api-app.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const bare = await startApi(t);

t.test('200 without a folder: a script that tells the owner of the page what to do', async (t) => {
  for (const [path, file, name] of [
    ['/js/formbricks.umd.cjs', 'formbricks.umd.cjs', '@formbricks/js'],
    ['/js/surveys.umd.cjs', 'surveys.umd.cjs', '@formbricks/surveys'],
    ['/api/packages/js', 'formbricks.umd.cjs', '@formbricks/js'],
    ['/api/packages/app', 'formbricks.umd.cjs', '@formbricks/js'],
    ['/api/packages/website', 'formbricks.umd.cjs', '@formbricks/js'],
    ['/api/packages/surveys', 'surveys.umd.cjs', '@formbricks/surveys'],
  ] as const) {
    const reply = await bare.client('GET', path);
    t.equal(reply.status, 200, path);
    t.match(reply.headers, {
      'content-type': 'text/javascript; charset=utf-8',
      'access-control-allow-origin': '*',
      'cache-control': 'private, no-store',
    });
    const said: string[] = [];
    vm.runInNewContext(reply.text, { console: { error: (text: string) => said.push(text) } });
    t.match(said, [new RegExp(`${file} of the npm package ${name}.*SDK_PATH`)]);
  }
});

t.test('404: other files', async (t) => {
  for (const name of ['other.js', 'package.json', '..%2f..%2fpackage.json', 'x'.repeat(300)]) {
    const reply = await bare.client('GET', `/js/${name}`);
    t.equal(reply.status, 404, name);
    t.equal(reply.json.code, 'not_found');
  }
});

t.test('serves a folder of scripts', async (t) => {
  const folder = temporaryFolder(t);
  const sdk = join(folder, 'sdk');
  mkdirSync(join(sdk, 'folder.js'), { recursive: true });
  const text = `/* ${'x'.repeat(5000)} */`;
  writeFileSync(join(folder, 'outside.js'), 'secret');
  writeFileSync(join(sdk, 'formbricks.umd.cjs'), text);
  writeFileSync(join(sdk, 'notes.txt'), 'secret');
  writeFileSync(join(sdk, '.hidden.js'), 'secret');
  writeFileSync(join(folder, 'mounted'), 'mounted');
  symlinkSync(join(folder, 'mounted'), join(sdk, 'mounted.js'));
  const api = await startApi(t, { env: { SDK_PATH: sdk } });
  const get = (name: string, headers: Record<string, string> = {}) =>
    api.client('GET', `/js/${name}`, undefined, headers);

  const whole = await get('formbricks.umd.cjs');
  t.equal(whole.status, 200);
  t.equal(whole.text, text);
  t.match(whole.headers, {
    'content-type': 'text/javascript; charset=utf-8',
    'content-length': String(text.length),
    'access-control-allow-origin': '*',
    'cache-control': /^public, max-age=3600, s-maxage=2592000/,
    'x-content-type-options': 'nosniff',
    vary: undefined,
    etag: /^"[\w-]{43}"$/,
  });
  t.equal((await api.client('GET', '/api/packages/js')).text, text);
  const head = await api.client('HEAD', '/js/formbricks.umd.cjs');
  t.match(head, { status: 200, text: '', headers: { etag: whole.headers.etag } });

  const unchanged = await get('formbricks.umd.cjs', { 'if-none-match': String(whole.headers.etag) });
  t.match(unchanged, { status: 304, text: '', headers: { etag: whole.headers.etag } });
  t.equal((await get('formbricks.umd.cjs', { 'if-none-match': '"other"' })).status, 200);

  const weak = await get('formbricks.umd.cjs', { 'if-none-match': `W/${whole.headers.etag}` });
  t.equal(weak.status, 304, 'a weak ETag matches too, because proxies that compress send one');
  const plain = await get('formbricks.umd.cjs', { 'accept-encoding': 'gzip' });
  t.match(plain, { text, headers: { 'content-encoding': undefined } });

  t.equal((await get('mounted.js')).text, 'mounted', 'files can be symbolic links, as in mounted folders');
  for (const name of ['notes.txt', '.hidden.js', 'folder.js', '..%2foutside.js', '%2e%2e%2foutside.js', '']) {
    t.equal((await get(name)).status, 404, name);
  }
  const missing = await get('surveys.umd.cjs');
  t.equal(missing.status, 200);
  t.match(missing.text, /console\.error\(".*SDK_PATH of the API has no surveys\.umd\.cjs/);
});

t.test('a folder that cannot be served ends the start with an error message', async (t) => {
  const folder = temporaryFolder(t);
  const refused = (path: string, problem: RegExp) =>
    t.rejects(loadSdkScripts(path), { name: 'ConfigError', problems: [problem] });
  await refused(join(folder, 'nowhere'), /^SDK_PATH: .*nowhere cannot be read/);
  await refused(folder, /^SDK_PATH: .* has no script in it; put formbricks\.umd\.cjs there/);
  writeFileSync(join(folder, 'large.js'), Buffer.alloc(5 * 1024 * 1024 + 1));
  await refused(folder, /^SDK_PATH: .*large\.js is larger than 5242880 bytes/);
  const many = temporaryFolder(t);
  for (let i = 0; i < 51; i++) writeFileSync(join(many, `${i}.js`), '');
  await refused(many, /^SDK_PATH: .* has more than 50 scripts/);
  t.equal(await loadSdkScripts(null), null);
});
