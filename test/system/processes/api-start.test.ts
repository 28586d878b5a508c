/** The API process: its start, its output, and its end. */
import { once } from 'node:events';
import { statSync, writeFileSync } from 'node:fs';
import { request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { listen } from '#test/support/listen.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
const program = ['api/main.ts'];
const memory = { DATABASE_URL: 'file::memory:' };

t.test('uses credentials that the operator chose, and does not print the password', async (t) => {
  const api = start(program, {
    ...memory,
    API_PORT: '0',
    API_WORKERS: '2',
    BOOTSTRAP_WORKSPACE_ID: 'mine',
    BOOTSTRAP_API_KEY: "it's-mine",
    BOOTSTRAP_EMAIL: 'me@example.com',
    BOOTSTRAP_PASSWORD: 'Password1',
  });
  t.teardown(() => api.stop('SIGKILL'));
  await api.until(/environment\n/);
  t.match(api.output(), /"msg":"API_WORKERS is not a setting and has no effect; unset it"/);
  t.match(api.output(), /owner +me@example\.com/);
  t.match(api.output(), "curl -H 'x-api-key: it'\\''s-mine' http://localhost:8080/api/v1/management/me");
  t.notMatch(api.output(), /Password1|password /);
});

for (const signal of ['SIGTERM', 'SIGINT'] as const) {
  t.test(`${signal}: answers requests in flight, accepts no new ones, and exits with 0`, async (t) => {
    const port = await freePort();
    const api = start(program, { ...memory, API_PORT: String(port), BOOTSTRAP_WORKSPACE_ID: 'ws1' });
    t.teardown(() => api.stop('SIGKILL'));
    await api.until(/environment\n/);
    const body = '{"surveyId":"nothing","finished":false,"data":{}}';
    const inFlight = httpRequest({
      port,
      host: '127.0.0.1',
      method: 'POST',
      path: '/api/v1/client/ws1/responses',
      headers: { 'content-length': body.length, expect: '100-continue' },
    });
    inFlight.flushHeaders();
    // The server sends 100 Continue once it has begun the request.
    await once(inFlight, 'continue');
    const ended = api.stop(signal);
    const refused = new Promise<void>((resolve) => {
      const knock = (): void => {
        fetch(`http://127.0.0.1:${port}/health`, { headers: { connection: 'close' } }).then(knock, () =>
          resolve(),
        );
      };
      knock();
    });
    await refused;
    const answered = once(inFlight, 'response');
    inFlight.end(body);
    const [response] = await answered;
    t.equal(response.statusCode, 404);
    response.resume();
    t.equal(await ended, 0);
  });
}

async function refusal(
  env: Record<string, string>,
): Promise<{ code: number | null; lines: readonly string[] }> {
  const api = start(program, env);
  const code = await api.ended();
  return { code, lines: api.output().trimEnd().split('\n') };
}

t.test('exit 1 with a line for each mistake of the environment', async (t) => {
  const { code, lines } = await refusal({ API_PORT: 'x', DATABASE_URL: 'mysql://x', LOG_LEVEL: 'loud' });
  t.equal(code, 1);
  t.match(lines, [
    /^The API cannot start: several settings are wrong:$/,
    /^API_PORT: /,
    /^DATABASE_URL: /,
    /^LOG_LEVEL: /,
  ]);
  t.equal(lines.length, 4);
});

t.test(
  'exit 1 with one sentence: a port in use, and the credentials are printed at the next start',
  async (t) => {
    const blocker = createServer();
    const port = await listen(t, blocker);
    const env = { DATABASE_URL: `file:${join(folder, 'taken.sqlite')}` };
    const { code, lines } = await refusal({ ...env, API_PORT: String(port) });
    t.equal(code, 1);
    t.strictSame(lines, [
      `The API cannot start: API_PORT: another program listens on 127.0.0.1:${port}; end it or choose another port`,
    ]);
    const api = start(program, { ...env, API_PORT: '0' });
    t.teardown(() => api.stop('SIGKILL'));
    await api.until(/API key +fbk_/);
  },
);

t.test('exit 1 with one sentence: an address of another machine', async (t) => {
  const { code, lines } = await refusal({ ...memory, API_PORT: '0', API_HOST: '192.0.2.1' });
  t.equal(code, 1);
  t.equal(lines.length, 1);
  t.match(lines[0], /^The API cannot start: API_HOST: 192\.0\.2\.1 is not an address of this machine/);
});

t.test('exit 1 with one sentence: a folder that cannot be created', async (t) => {
  const file = join(folder, 'a-file');
  writeFileSync(file, 'not a folder');
  const { code, lines } = await refusal({
    API_PORT: '0',
    DATABASE_URL: `file:${join(file, 'below/x.sqlite')}`,
  });
  t.equal(code, 1);
  t.equal(lines.length, 1);
  t.match(lines[0], /^The API cannot start: DATABASE_URL: cannot open .*writ/);
});

t.test('exit 1 with one sentence: a file that is not a database, which stays unchanged', async (t) => {
  const file = join(folder, 'letter.txt');
  writeFileSync(file, 'Dear reader, this is a letter and no database. '.repeat(100));
  const { size } = statSync(file);
  const { code, lines } = await refusal({ API_PORT: '0', DATABASE_URL: `file:${file}` });
  t.equal(code, 1);
  t.equal(lines.length, 1);
  t.match(lines[0], /^The API cannot start: DATABASE_URL: cannot open/);
  t.equal(statSync(file).size, size);
});
