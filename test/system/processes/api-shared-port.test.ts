/** API_REUSE_PORT: several processes that a service manager starts on one port, which look like one. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { freePort } from '#test/support/ports.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { type Started, start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const redis = await startRedis(t);
const { url, drop } = await createPostgresDatabase();
t.teardown(drop);
const port = await freePort();
const env = {
  API_PORT: String(port),
  API_REUSE_PORT: '1',
  DATABASE_URL: url,
  REDIS_URL: redis.url,
  STORAGE_PATH: join(temporaryFolder(t), 'uploads'),
  BOOTSTRAP_WORKSPACE_ID: 'ws1',
  BOOTSTRAP_API_KEY: 'fbk_shared',
  SIGNUP_ENABLED: '1',
};
const key = { 'x-api-key': 'fbk_shared' };

function startApi(): Started {
  const api = start(['api/main.ts'], env);
  t.teardown(() => api.stop('SIGKILL'));
  return api;
}

/** Returns the status of a request on a separate connection, for which the kernel chooses the process. */
function ask(path: string, headers: Record<string, string> = {}, method = 'GET'): Promise<number> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(
      { port, host: '127.0.0.1', path, method, headers, agent: new Agent({ keepAlive: false }) },
      (response) => {
        response.resume();
        response.once('end', () => resolve(response.statusCode ?? 0));
      },
    );
    request.once('error', reject);
    request.end();
  });
}

interface InFlight {
  finish(): void;
  /** The status, once it is finished. */
  readonly outcome: Promise<number | 'cut'>;
}

/** Sends a request on a separate connection, and waits until a process has asked for the body. */
async function begin(): Promise<InFlight> {
  const body = '{"surveyId":"nothing","finished":false,"data":{}}';
  const request = httpRequest({
    port,
    host: '127.0.0.1',
    method: 'POST',
    path: '/api/v1/client/ws1/responses',
    headers: { 'content-length': body.length, expect: '100-continue' },
    agent: new Agent({ keepAlive: false }),
  });
  const outcome = new Promise<number | 'cut'>((resolve) => {
    request.once('response', (response) => {
      response.resume();
      resolve(response.statusCode ?? 0);
    });
    request.once('error', () => resolve('cut'));
  });
  request.flushHeaders();
  await once(request, 'continue');
  return { finish: () => void request.end(body), outcome };
}

/** Returns how many sockets listen on the port. */
async function listeners(): Promise<number> {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n');
  return lines.filter((line) => line.includes(` ${address} 00000000:0000 0A `)).length;
}

const [victim, other] = [startApi(), startApi()];
await Promise.all([victim.until(/API ready/), other.until(/API ready/)]);

t.test('both listen on the port and answer, and one of them prints the first credentials', async (t) => {
  t.equal(await listeners(), 2);
  for (const api of [victim, other])
    t.match(api.output(), new RegExp(`^API ready on http://127.0.0.1:${port}$`, 'm'));
  await until(() => /environment\n/.test(victim.output() + other.output()));
  t.equal((victim.output() + other.output()).split('First start').length, 2);
  const statuses = await Promise.all(Array.from({ length: 60 }, () => ask('/api/v1/management/me', key)));
  t.strictSame([...new Set(statuses)], [200]);
});

t.test('a limit has one counter for all of them', async (t) => {
  // Thirty an hour from one address, including requests that are refused for other reasons.
  const signUp = (): Promise<number> => ask('/auth/signup', {}, 'POST');
  t.equal(await signUp(), 403);
  await until(async () => (await signUp()) === 429, 'the limit is reached');
  t.equal((await redis.client.keys('fga:auth.signup:*')).length, 1);
});

t.test('a process that dies loses only its own requests, and another one takes its place', async (t) => {
  const inFlight = await Promise.all(Array.from({ length: 30 }, begin));
  t.equal(await victim.stop('SIGKILL'), null);
  for (const { finish } of inFlight) finish();
  const outcomes = await Promise.all(inFlight.map(({ outcome }) => outcome));
  t.strictSame(new Set(outcomes), new Set([404, 'cut']), 'the kernel had shared the connections');
  t.equal(await ask('/health'), 200);

  const next = startApi();
  await next.until(/API ready/);
  t.equal(await listeners(), 2);
  t.notMatch(next.output(), /First start|fbk_/, 'the credentials exist');
  t.equal(await next.stop(), 0);
});
