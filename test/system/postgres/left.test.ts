/**
 * Clients that leave during queries to PostgreSQL: nothing of theirs is held, and their requests end. On SQLite the
 * query ends before a client could leave.
 */
import type { ServerResponse } from 'node:http';
import { connect } from 'node:net';
import pg from 'pg';
import t, { type Test } from 'tap';
import { addSurvey, apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { freePort } from '#test/support/ports.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { until } from '#test/support/until.ts';

/** Twice as many as connections to the database. */
const CLIENTS = 20;

async function start(t: Test) {
  const { drop, url } = await createPostgresDatabase();
  const port = await freePort();
  const env = { DATABASE_URL: url, PUBLIC_URL: `http://127.0.0.1:${port}` };
  const api = await startApi(t, { env, clock: Date.now });
  const replies: ServerResponse[] = [];
  api.app.server.on('request', (_, reply) => replies.push(reply));
  await api.app.listen({ host: '127.0.0.1', port });
  const admin = new pg.Client({ connectionString: url });
  await admin.connect();
  t.teardown(async () => {
    await admin.end();
    await api.close();
    await drop();
  });
  const sessions = async (condition: string): Promise<number> => {
    const { rows } = await admin.query(
      `select count(*)::int as n from pg_stat_activity
       where datname = current_database() and pid <> pg_backend_pid() and ${condition}`,
    );
    return rows[0].n;
  };
  return {
    ...api,
    port,
    url: env.PUBLIC_URL,
    replies,
    /** Sends requests that wait for the table, and leaves. */
    async leaveWhileLocked(table: string, requests: readonly string[]): Promise<void> {
      const before = replies.length;
      await admin.query(`begin; lock table "${table}" in access exclusive mode`);
      const sockets = requests.map((text) => {
        const socket = connect(port, '127.0.0.1').on('error', () => undefined);
        socket.write(text);
        return socket;
      });
      await until(async () => replies.length === before + requests.length);
      await until(async () => (await sessions(`wait_event_type = 'Lock'`)) > 0);
      for (const socket of sockets) socket.destroy();
      const left = replies.slice(before);
      await until(() => left.every((reply) => reply.socket === null || reply.socket.destroyed));
      await admin.query('rollback');
      await until(() => left.every((reply) => reply.writableEnded));
    },
    isIdle: () => until(async () => (await sessions(`state <> 'idle'`)) === 0),
  };
}

const head = (method: string, path: string, length: number, type = 'application/json'): string =>
  `${method} ${path} HTTP/1.1\r\nHost: a\r\nX-Api-Key: ${apiKey}\r\nContent-Type: ${type}\r\nContent-Length: ${length}\r\n\r\n`;

const requests: readonly (readonly [string, string])[] = [
  ['before its body arrives', head('POST', `/api/v2/client/${workspaceId}/responses`, 1_000)],
  ['in the middle of its body', `${head('POST', `/api/v2/client/${workspaceId}/responses`, 1_000)}{"data":`],
  ['with a key, before its body arrives', head('PUT', `/api/v1/management/surveys/x`, 1_000)],
  ['after its body has arrived', `${head('POST', `/api/v1/client/${workspaceId}/responses`, 2)}{}`],
  ['without a body', head('GET', `/api/v1/client/${workspaceId}/environment`, 0)],
];

for (const [when, text] of requests) {
  t.test(`a client that leaves ${when} holds no connection`, async (t) => {
    const api = await start(t);
    await api.leaveWhileLocked('workspaces', Array<string>(CLIENTS).fill(text));
    await api.isIdle();
    const { id: surveyId } = await addSurvey(api);
    const body = { surveyId, finished: false, data: { q1: 'x' } };
    const answers = await Promise.all(
      Array.from({ length: 2 * CLIENTS }, () =>
        api.client('POST', `/api/v1/client/${workspaceId}/responses`, body),
      ),
    );
    t.ok(
      answers.every(({ status }) => status === 200),
      'other clients are served',
    );
    await api.isIdle();
  });
}

t.test('a client that leaves during a transaction that waits for a row holds no lock', async (t) => {
  const api = await start(t);
  const { id: surveyId } = await addSurvey(api, { autoComplete: 1_000 });
  const text = JSON.stringify({ surveyId, finished: true, data: { q1: 'x' } });
  const request = `${head('POST', `/api/v1/client/${workspaceId}/responses`, text.length)}${text}`;
  await api.leaveWhileLocked('responses', Array<string>(CLIENTS).fill(request));
  await api.isIdle();
  const reply = await api.manage('PUT', `/api/v1/management/surveys/${surveyId}`, { name: 'Changed' });
  t.equal(reply.status, 200, 'the survey is not locked');
});
