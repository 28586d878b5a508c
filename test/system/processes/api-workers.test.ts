/** API_WORKERS: several processes behind one port, which look like one. */
import { once } from 'node:events';
import { readFile } from 'node:fs/promises';
import { Agent, request as httpRequest } from 'node:http';
import { createServer } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { sharedDatabase } from '#test/support/database.ts';
import { childrenOf } from '#test/support/gateway-process.ts';
import { freePort } from '#test/support/ports.ts';
import { type Started, start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const WORKERS = 2;

interface Api {
  readonly process: Started;
  readonly port: number;
  readonly env: Record<string, string>;
}

async function startWorkers(t: Test, more: Record<string, string> = {}): Promise<Api> {
  const folder = temporaryFolder(t);
  const port = await freePort();
  const env = {
    API_PORT: String(port),
    API_WORKERS: String(WORKERS),
    DATABASE_URL: await sharedDatabase(t),
    STORAGE_PATH: join(folder, 'uploads'),
    BOOTSTRAP_WORKSPACE_ID: 'ws1',
    BOOTSTRAP_API_KEY: 'fbk_workers',
    SIGNUP_ENABLED: '1',
    ...more,
  };
  const process = start(['api/main.ts'], env);
  t.teardown(() => process.stop());
  await process.until(/environment\n/);
  return { process, port, env };
}

/** Returns the status of a request on a separate connection, for which the kernel chooses the worker. */
function ask(
  port: number,
  path: string,
  headers: Record<string, string> = {},
  method = 'GET',
): Promise<number> {
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

/** Sends a request on a separate connection, and waits until a worker has asked for the body. */
async function begin(port: number): Promise<InFlight> {
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

const key = { 'x-api-key': 'fbk_workers' };

const { process: api, port, env } = await startWorkers(t);
const workers = (): number[] => childrenOf(api.child.pid);

t.test('prints the first credentials once, and all workers serve', async (t) => {
  t.match(api.output(), new RegExp(`^API ready on http://127.0.0.1:${port} \\(2 processes\\)$`, 'm'));
  t.equal(api.output().split('First start').length - 1, 1);
  t.equal(api.output().split('API ready').length - 1, 1);
  const statuses = await Promise.all(
    Array.from({ length: 60 }, () => ask(port, '/api/v1/management/me', key)),
  );
  t.strictSame([...new Set(statuses)], [200]);
});

t.test('a limit without Redis counts the requests of all workers, and survives them', async (t) => {
  // Thirty an hour from one address, including requests that are refused for other reasons.
  const signUp = (): Promise<number> => ask(port, '/api/auth/signup', {}, 'POST');
  const before = workers();
  const first = await Promise.all(Array.from({ length: 20 }, signUp));
  t.strictSame([...new Set(first)], [400]);
  for (const pid of before) process.kill(pid, 'SIGKILL');
  await until(
    async () => {
      const pids = workers();
      return pids.length === WORKERS && pids.every((pid) => !before.includes(pid));
    },
    'all workers are replaced',
    api,
  );
  await until(async () => (await listenersOn(port)) === WORKERS, 'all of them listen', api);
  const rest = await Promise.all(Array.from({ length: 20 }, signUp));
  t.equal(rest.filter((status) => status === 400).length, 10, rest.join());
  t.equal(rest.filter((status) => status === 429).length, 10);
});

t.test('a worker that dies loses only its own requests, and is replaced', async (t) => {
  const [victim = 0, ...others] = workers();
  const inFlight = await Promise.all(Array.from({ length: 30 }, () => begin(port)));
  process.kill(victim, 'SIGKILL');
  await until(() => !workers().includes(victim), 'the victim is gone', api);
  for (const { finish } of inFlight) finish();
  const outcomes = await Promise.all(inFlight.map(({ outcome }) => outcome));
  t.ok(outcomes.includes(404), 'requests of other workers are answered');
  t.strictSame(new Set(outcomes.filter((outcome) => outcome !== 'cut')), new Set([404]));
  await until(() => workers().length === WORKERS, 'it is replaced', api);
  const now = workers();
  t.notOk(now.includes(victim));
  t.ok(others.every((pid) => now.includes(pid)));
  t.equal(await ask(port, '/health'), 200);
});

t.test('a worker that hangs is replaced', async (t) => {
  const [hanging = 0, ...others] = workers();
  process.kill(hanging, 'SIGSTOP');
  await until(() => !workers().includes(hanging), 'it is killed', api);
  await until(() => workers().length === WORKERS, 'it is replaced', api);
  const now = workers();
  t.ok(
    others.every((pid) => now.includes(pid)),
    'the others give signs of life',
  );
  t.match(api.output(), new RegExp(`"pid":${hanging},.*gave no sign of life for 30 s`));
});

t.test('SIGTERM: every worker answers its requests in flight, and all end in time', async (t) => {
  const inFlight = await Promise.all(Array.from({ length: 20 }, () => begin(port)));
  const ended = api.stop();
  await until(() =>
    ask(port, '/health').then(
      () => false,
      () => true,
    ),
  );
  for (const { finish } of inFlight) finish();
  for (const { outcome } of inFlight) t.equal(await outcome, 404);
  t.equal(await ended, 0);
});

t.test('a later start prints no credentials; port 0 is the same free port for all', async (t) => {
  const again = start(['api/main.ts'], { ...env, API_PORT: '0' });
  t.teardown(() => again.stop());
  const [, found] = await again.until(/API ready on http:\/\/127\.0\.0\.1:(\d+) \(2 processes/);
  t.equal(await ask(Number(found), '/api/v1/management/me', key), 200);
  // Resolves when the last process that holds the output has ended, because workers without their parent end by
  // themselves.
  t.equal(await again.stop('SIGKILL'), null);
  t.notMatch(again.output(), /First start|fbk_/);
});

t.test('exit 1 with one sentence: a port in use, even by a process that shares it', async (t) => {
  const blocker = createServer();
  blocker.listen({ port: 0, host: '127.0.0.1', reusePort: true });
  t.teardown(() => blocker.close());
  await once(blocker, 'listening');
  const address = blocker.address();
  const port = typeof address === 'object' && address !== null ? address.port : 0;
  const api = start(['api/main.ts'], {
    API_PORT: String(port),
    API_WORKERS: '2',
    DATABASE_URL: await sharedDatabase(t),
  });
  t.equal(await api.ended(), 1);
  t.equal(
    api.output(),
    `The API cannot start: API_PORT: another program listens on 127.0.0.1:${port}; end it or choose another port\n`,
  );
});

t.test('exit 1 with one sentence: an error at the start of the first worker', async (t) => {
  const folder = temporaryFolder(t);
  const api = start(['api/main.ts'], {
    API_PORT: '0',
    API_WORKERS: '3',
    DATABASE_URL: await sharedDatabase(t),
    SDK_PATH: join(folder, 'nothing-here'),
  });
  t.equal(await api.ended(), 1);
  t.match(api.output(), /^The API cannot start: SDK_PATH: .*\n$/);
});

/** Returns how many sockets listen on the port. A worker listens once it can answer. */
async function listenersOn(port: number): Promise<number> {
  const address = `0100007F:${port.toString(16).toUpperCase().padStart(4, '0')}`;
  const lines = (await readFile('/proc/net/tcp', 'utf8')).split('\n');
  return lines.filter((line) => line.includes(` ${address} 00000000:0000 0A `)).length;
}
