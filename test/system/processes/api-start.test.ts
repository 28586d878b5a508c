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
import { refusedStarts } from './refused-starts.ts';

const folder = temporaryFolder(t);
const program = ['api/main.ts'];
const memory = { DATABASE_URL: 'file::memory:' };

t.test('chosen credentials, without the password, and a bucket that may come back', async (t) => {
  const api = start(program, {
    ...memory,
    S3_BUCKET_NAME: 'uploads',
    S3_ENDPOINT_URL: 'http://127.0.0.1:9',
    S3_ACCESS_KEY: 'a',
    S3_SECRET_KEY: 'b',
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
  await api.until(/the bucket for uploads does not answer/);
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

t.test('anything that prevents a start exits with 1 and one clear sentence', async (t) => {
  const port = await listen(t, createServer());
  const file = join(folder, 'letter.txt');
  writeFileSync(file, 'Dear reader, this is a letter and no database. '.repeat(100));
  const { size } = statSync(file);
  const taken = { DATABASE_URL: `file:${join(folder, 'taken.sqlite')}` };
  for (const { env, told, line } of refusedStarts('The API', { port: String(port), folder })) {
    const api = start(program, { API_PORT: '0', ...env });
    t.equal(await api.ended(), 1, line);
    const [before, sentence] = api.output().split('The API cannot start: ');
    t.equal(before, '', line);
    for (const text of told) t.match(sentence, text, line);
  }
  t.equal(statSync(file).size, size, 'a file that is not a database stays unchanged');
  const api = start(program, { ...taken, API_PORT: '0' });
  t.teardown(() => api.stop('SIGKILL'));
  await api.until(/API key +fbk_/);
});
