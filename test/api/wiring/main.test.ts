/** The process starts, serves and ends. test/system/processes and test/system/crashes have more of it. */
import { join } from 'node:path';
import t from 'tap';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const program = ['api/main.ts'];

t.test('the first start prints the credentials once, and the calls that it shows work', async (t) => {
  const port = await freePort();
  const env = {
    API_PORT: String(port),
    DATABASE_URL: `file:${join(folder, 'first/floodgate.sqlite')}`,
    PUBLIC_URL: `http://localhost:${port}`,
  };
  const first = start(program, env);
  t.teardown(() => first.stop('SIGKILL'));
  await first.until(/environment\n/);
  const output = first.output();
  t.match(output, new RegExp(`^API ready on http://127.0.0.1:${port}$`, 'm'));
  const key = /API key +(fbk_[\w-]{43})/.exec(output)?.[1] ?? '';
  const workspace = /workspace id +(c[0-9a-z]{24})/.exec(output)?.[1];
  t.match(output, /owner +owner@example\.com/);
  t.match(output, /password +\S+/);
  t.match(output, `curl -H 'x-api-key: ${key}' http://localhost:${port}/api/v1/management/me`);
  t.match(output, `curl http://localhost:${port}/api/v1/client/${workspace}/environment`);
  const me = await fetch(`http://127.0.0.1:${port}/api/v1/management/me`, { headers: { 'x-api-key': key } });
  t.match(await me.json(), { workspace: { id: workspace } });
  t.equal((await fetch(`http://127.0.0.1:${port}/api/v1/client/${workspace}/environment`)).status, 200);
  t.equal(await first.stop(), 0);

  const second = start(program, env);
  t.teardown(() => second.stop('SIGKILL'));
  await second.until(/API ready/);
  const again = await fetch(`http://127.0.0.1:${port}/api/v1/management/me`, {
    headers: { 'x-api-key': key },
  });
  t.equal(again.status, 200, 'the key is valid after a restart');
  t.equal(await second.stop(), 0);
  t.notMatch(second.output(), /First start|fbk_|password/);
});
