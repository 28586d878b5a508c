/** Several API processes on one database: they share the work without conflicts. */
import t from 'tap';
import { creatorAt, startReceiver } from '#test/api/events/support.ts';
import { startPair } from '#test/support/api-process.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { until } from '#test/support/until.ts';
import { openSurvey } from '#test/support/world.ts';

const RESPONSES = 300;
const KEY = 'fbk_two';

t.test('each event is delivered once, whichever process stored the response', async (t) => {
  const database = await sharedDatabase(t);
  const { bases, processes } = await startPair(t, database, KEY, {
    DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
  });
  const receiver = await startReceiver(t);
  const create = creatorAt(bases[0], KEY);
  const triggers = ['responseCreated', 'responseFinished'];
  await create('webhooks', { workspaceId: 'ws1', url: receiver.url, triggers });
  const surveyId = await create('management/surveys', { workspaceId: 'ws1', ...openSurvey });

  const statuses: number[] = [];
  await Promise.all(
    Array.from({ length: 8 }, async (_, sender) => {
      for (let i = sender; i < RESPONSES; i += 8) {
        const reply = await fetch(`${bases[i % 2]}/api/v1/client/ws1/responses`, {
          method: 'POST',
          body: JSON.stringify({ surveyId, finished: false, data: { q1: 'Yes' } }),
        });
        statuses.push(reply.status);
        const { data: made } = (await reply.json()) as { data: { id: string } };
        // Sent to the other process, which reads before it writes, in one transaction.
        const change = await fetch(`${bases[(i + 1) % 2]}/api/v1/client/ws1/responses/${made.id}`, {
          method: 'PUT',
          body: JSON.stringify({ finished: true, data: {} }),
        });
        statuses.push(change.status);
        await change.arrayBuffer();
      }
    }),
  );
  t.same(new Set(statuses), new Set([200]), 'every response is accepted');
  await until(() => receiver.received.length >= 2 * RESPONSES, 'every event is delivered', processes[0]);
  const ids = receiver.received.map(({ headers }) => headers['webhook-id']);
  t.equal(ids.length, 2 * RESPONSES);
  t.equal(new Set(ids).size, 2 * RESPONSES, 'each event is delivered once');
  for (const api of processes) {
    t.equal(await api.stop(), 0);
    const [complaint = ''] = /"level":50.*/.exec(api.output()) ?? [];
    t.equal(complaint.slice(0, 300), '', 'the processes do not disturb each other');
  }
});
