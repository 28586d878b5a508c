/** SIGTERM: the process ends with 0 within ten seconds, whatever hangs. */
import { once } from 'node:events';
import { connect, createServer, type Socket } from 'node:net';
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { stopWithin } from '#api/processes/stop.ts';
import { startApiProcess } from '#test/support/api-process.ts';
import { isOnPostgres, openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { listen } from '#test/support/listen.ts';
import type { Started } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';

/**
 * The process gives up hanging work after 8.5 seconds. By itself none of it ends within 30, the timeout of a database.
 */
const BOUND_MS = 30_000;

/** Accepts connections and never replies. */
async function silentServer(t: Test): Promise<{ readonly port: number; connections(): number }> {
  const sockets: Socket[] = [];
  const server = createServer((socket) => {
    sockets.push(socket);
    socket.on('error', () => undefined);
    // Reads incoming bytes, so that more can arrive.
    socket.resume();
  });
  const port = await listen(t, server);
  return { port, connections: () => sockets.length };
}

interface Running {
  readonly api: Started;
  readonly port: number;
  readonly database: string;
  call(method: string, path: string, body?: unknown): Promise<Response>;
}

async function running(t: Test, env: Record<string, string> = {}): Promise<Running> {
  const database = await sharedDatabase(t);
  const api = await startApiProcess(t, {
    DATABASE_URL: database,
    BOOTSTRAP_WORKSPACE_ID: 'ws1',
    BOOTSTRAP_API_KEY: 'fbk_stop',
    BOOTSTRAP_PASSWORD: 'Password1',
    SIGNUP_ENABLED: '1',
    DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
    ...env,
  });
  return {
    api,
    port: Number(new URL(api.origin).port),
    database,
    call: (method, path, body) =>
      fetch(`${api.origin}${path}`, {
        method,
        headers: { 'x-api-key': 'fbk_stop' },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      }),
  };
}

async function hangReceiver(t: Test, { api, call }: Running): Promise<void> {
  const receiver = await silentServer(t);
  const url = `http://127.0.0.1:${receiver.port}/`;
  await call('POST', '/api/v1/webhooks', { workspaceId: 'ws1', url, triggers: ['responseCreated'] });
  const survey = await call('POST', '/api/v1/management/surveys', {
    workspaceId: 'ws1',
    name: 'Survey',
    type: 'link',
    status: 'inProgress',
    questions: [{ id: 'q1', type: 'openText', headline: 'What?' }],
  });
  const { data } = (await survey.json()) as { data: { id: string } };
  const answer = { surveyId: data.id, finished: true, data: { q1: 'x' } };
  for (let i = 0; i < 5; i += 1) await call('POST', '/api/v1/client/ws1/responses', answer);
  await until(() => receiver.connections() > 0, 'the receiver is called', api);
}

async function hangMails({ api, call }: Running, connections: () => number): Promise<void> {
  const asked = await call('GET', '/api/auth/csrf');
  const { csrfToken } = (await asked.json()) as { csrfToken: string };
  const account = { name: 'Ada', email: 'ada@example.com', password: 'Password1' };
  const body = new URLSearchParams({ csrfToken, ...account });
  const headers = { cookie: String(asked.headers.getSetCookie()[0]?.split(';')[0]) };
  await fetch(new URL('/auth/signup', asked.url), { method: 'POST', headers, body, redirect: 'manual' });
  await until(() => connections() > 0, 'the mail server is called', api);
}

/** Starts a body that never ends, and a reply that is not read. */
async function hangClients(t: Test, { port }: Running): Promise<void> {
  const slow = connect(port, '127.0.0.1');
  slow.on('error', () => undefined);
  t.teardown(() => slow.destroy());
  slow.write(
    'POST /api/v1/client/ws1/responses HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\ncontent-length: 1000\r\n\r\n',
  );
  await once(slow, 'data');
  slow.write('{');
  const deaf = connect(port, '127.0.0.1');
  deaf.on('error', () => undefined);
  t.teardown(() => deaf.destroy());
  deaf.write('GET /api/docs/openapi.json HTTP/1.1\r\nhost: x\r\n\r\n'.repeat(50));
  await once(deaf, 'readable');
}

/** Lets another process write without end. */
async function hangDatabase(t: Test, { call, database }: Running): Promise<void> {
  const db = openTestDatabase(database);
  const gate = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const held = db.transaction().execute(async (trx) => {
    if (isOnPostgres) await sql`lock table "actionClasses" in access exclusive mode`.execute(trx);
    begun.resolve();
    await gate.promise;
  });
  await begun.promise;
  t.teardown(async () => {
    gate.resolve();
    await held;
    await db.destroy();
  });
  const wanted = { workspaceId: 'ws1', name: 'a', type: 'code', key: 'a' };
  call('POST', '/api/v1/management/action-classes', wanted).catch(() => undefined);
  // Answered after the write has begun, so the write is running.
  await call('GET', '/health');
}

/** Adds a row whose object the sweep at the next start wants to delete. */
async function addOrphan(database: string): Promise<void> {
  const db = openTestDatabase(database);
  await sql`insert into files ("key", "workspaceId", "access", "size", "createdAt")
    values ('gone/public/a.png', 'gone', 'public', 1, '2020-01-01T00:00:00.000Z')`.execute(db);
  await db.destroy();
}

t.test('stops in time while all of them hang at once', async (t) => {
  const [mails, files] = [await silentServer(t), await silentServer(t)];
  const env = {
    SMTP_URL: `smtp://127.0.0.1:${mails.port}`,
    S3_BUCKET_NAME: 'uploads',
    S3_ENDPOINT_URL: `http://127.0.0.1:${files.port}`,
    S3_ACCESS_KEY: 'a',
    S3_SECRET_KEY: 'b',
    S3_FORCE_PATH_STYLE: '1',
  };
  const first = await running(t, env);
  await addOrphan(first.database);
  t.equal(await first.api.stop(), 0);
  const seen = files.connections();
  // The sweep at its start hangs from the beginning.
  const second = await running(t, { ...env, DATABASE_URL: first.database });
  const one = { ...second, database: first.database };
  await until(() => files.connections() > seen + 1);
  await hangMails(one, mails.connections);
  await hangReceiver(t, one);
  await hangClients(t, one);
  await hangDatabase(t, one);
  const began = performance.now();
  t.equal(await one.api.stop(), 0);
  const took = Math.round(performance.now() - began);
  t.ok(took < BOUND_MS, `${took} ms`);
});

t.test('the log names what hangs, and each part is closed in its order', async (t) => {
  const order: string[] = [];
  const failed: string[] = [];
  const step = (name: string, stop: () => Promise<void> = async () => undefined) => ({
    name,
    async stop() {
      order.push(name);
      await stop();
    },
  });
  const forever = () => new Promise<void>(() => undefined);
  const onError = (name: string): void => void failed.push(name);
  const fails = async () => {
    throw new Error('no');
  };
  const ended = { first: [step('a', fails), step('b')], after: [step('c', fails), step('d')] };
  t.same(await stopWithin(60_000, ended, onError), []);
  t.same(
    [order, failed],
    [
      ['a', 'b', 'c', 'd'],
      ['a', 'c'],
    ],
  );
  const hung = { first: [step('e', forever), step('f')], after: [step('g')] };
  t.same(await stopWithin(1, hung, onError), ['e', 'g']);
});
