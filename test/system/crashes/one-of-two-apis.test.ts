/** kill -9 of one of two API processes during writes: the other goes on, and no acknowledged write is lost. */
import t from 'tap';
import { toTimestamp } from '#api/values/timestamps.ts';
import { creatorAt, startReceiver } from '#test/api/events/support.ts';
import { startPair } from '#test/support/api-process.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { dice } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import { openSurvey } from '#test/support/world.ts';

const RESPONSES = 300;
const SENDERS = 8;
const roll = dice(1);
const KEY = 'fbk_kill';

t.test('after the kill of one process, the other one serves and takes over its deliveries', async (t) => {
  const url = await sharedDatabase(t);
  const { bases, processes } = await startPair(t, url, KEY, {
    RATE_LIMITING_DISABLED: '1',
    DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
  });
  // A slow receiver has running deliveries of the killed process.
  const receiver = await startReceiver(t, (response) => {
    setTimeout(() => response.writeHead(204).end(), roll(30));
  });
  const db = openTestDatabase(url);
  t.teardown(() => db.destroy());

  const create = creatorAt(bases[1], KEY);
  const surveyId = await create('management/surveys', { workspaceId: 'ws1', ...openSurvey });
  await create('webhooks', { workspaceId: 'ws1', url: receiver.url, triggers: ['responseCreated'] });

  const acknowledged: string[] = [];
  let failed = 0;
  let isKilled = false;
  const killAt = RESPONSES / 3;
  const send = async (): Promise<void> => {
    const base = bases[isKilled ? 1 : roll(2)] ?? '';
    try {
      const reply = await fetch(`${base}/api/v1/client/ws1/responses`, {
        method: 'POST',
        body: JSON.stringify({ surveyId, finished: false, data: { q1: 'Yes' } }),
      });
      const { data } = (await reply.json()) as { data: { id: string } };
      if (reply.status !== 200) throw new Error(`answered ${reply.status}`);
      acknowledged.push(data.id);
    } catch (error) {
      failed += 1;
      if (base === bases[1]) t.fail(`the other process failed: ${error}`);
    }
    if (acknowledged.length >= killAt && !isKilled) {
      isKilled = true;
      processes[0]?.child.kill('SIGKILL');
    }
  };
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (acknowledged.length < RESPONSES) await send();
    }),
  );
  await processes[0]?.ended();
  t.ok(failed <= SENDERS, `${failed} requests were cut: only those in progress`);

  const stored = await db.selectFrom('responses').select('id').execute();
  const ids = new Set(stored.map(({ id }) => id));
  t.strictSame(
    acknowledged.filter((id) => !ids.has(id)),
    [],
    'every acknowledged response is stored',
  );

  // The other process runs the jobs.
  await db
    .updateTable('surveys')
    .set({ closeOn: toTimestamp(Date.now() - 1_000) })
    .execute();
  const statusNow = async () => (await db.selectFrom('surveys').select('status').executeTakeFirst())?.status;
  const [, other] = processes;
  await until(async () => (await statusNow()) === 'completed', 'the survey is closed', other);

  const delivered = (): Set<string> => new Set(receiver.received.map(({ json }) => json.data.id));
  await until(() => acknowledged.every((id) => delivered().has(id)), 'every event is delivered', other);
  const open = async () =>
    (await db.selectFrom('deliveries').select('id').where('status', '=', 'pending').execute()).length;
  await until(async () => (await open()) === 0, 'nothing is left to deliver', other);
  t.ok(delivered().size >= RESPONSES, 'the leases of the killed process are delivered');

  t.equal((await fetch(`${bases[1]}/health`)).status, 200);
  t.equal(await processes[1]?.stop(), 0);
  const [complaint = ''] = /"level":50.*/.exec(processes[1]?.output() ?? '') ?? [];
  t.equal(complaint.slice(0, 300), '');
});
