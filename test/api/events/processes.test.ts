/** Several API processes on one database: they share the work, and none of them is in the others' way. */
import { setTimeout as sleep } from 'node:timers/promises';
import t from 'tap';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { startReceiver } from './support.ts';

const RESPONSES = 300;

t.test('each event is delivered once, whichever process took the response', async (t) => {
  const database = await sharedDatabase(t);
  const bases: string[] = [];
  const processes = [];
  for (let i = 0; i < 2; i += 1) {
    const port = await freePort();
    const api = start(['api/main.ts'], {
      API_PORT: String(port),
      DATABASE_URL: database,
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
      BOOTSTRAP_API_KEY: 'fbk_two',
      BOOTSTRAP_PASSWORD: 'Password1',
      DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
      LOG_LEVEL: 'error',
    });
    t.teardown(() => api.stop('SIGKILL'));
    await api.until(/API ready/);
    processes.push(api);
    bases.push(`http://127.0.0.1:${port}`);
  }
  const receiver = await startReceiver();
  t.teardown(() => receiver.close());
  const db = openTestDatabase(database);
  t.teardown(() => db.destroy());
  const now = new Date().toISOString();
  await db
    .insertInto('webhooks')
    .values({
      id: 'hook',
      createdAt: now,
      updatedAt: now,
      workspaceId: 'ws1',
      name: null,
      url: receiver.url,
      source: 'user',
      triggers: '["responseCreated","responseFinished"]',
      surveyIds: '[]',
      secret: null,
    })
    .execute();
  const survey = await fetch(`${bases[0]}/api/v1/management/surveys`, {
    method: 'POST',
    headers: { 'x-api-key': 'fbk_two' },
    body: JSON.stringify({
      workspaceId: 'ws1',
      name: 'Survey',
      status: 'inProgress',
      questions: [{ id: 'q1', type: 'openText', headline: 'What?' }],
    }),
  });
  const { data } = (await survey.json()) as { data: { id: string } };

  const statuses: number[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, sender) => {
      for (let i = sender; i < RESPONSES; i += 8) {
        const reply = await fetch(`${bases[i % 2]}/api/v1/client/ws1/responses`, {
          method: 'POST',
          body: JSON.stringify({ surveyId: data.id, finished: false, data: { q1: 'Yes' } }),
        });
        statuses.push(reply.status);
        const { data: made } = (await reply.json()) as { data: { id: string } };
        // By the other process: it reads before it writes, in one transaction.
        const change = await fetch(`${bases[(i + 1) % 2]}/api/v1/client/ws1/responses/${made.id}`, {
          method: 'PUT',
          body: JSON.stringify({ finished: true, data: {} }),
        });
        statuses.push(change.status);
        await change.arrayBuffer();
      }
    }),
  );
  t.same(new Set(statuses), new Set([200]), 'no response is refused because of the other process');
  const deadline = Date.now() + 20_000;
  while (receiver.received.length < 2 * RESPONSES && Date.now() < deadline) await sleep(50);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  t.equal(ids.length, 2 * RESPONSES);
  t.equal(new Set(ids).size, 2 * RESPONSES, 'no lease was given twice');
  for (const api of processes) {
    t.equal(await api.stop(), 0);
    const [complaint = ''] = /"level":50.*/.exec(api.output()) ?? [];
    t.equal(complaint.slice(0, 300), '', 'no process stood in the way of the other');
  }
});
