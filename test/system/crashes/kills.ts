/**
 * Kills the API (SIGKILL) at random times during a run of finished responses: no event is lost, and ids stay. The
 * caller passes everything that depends on the database.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Test } from 'tap';
import { creatorAt, startReceiver } from '#test/api/events/support.ts';
import { openTestDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { type Started, start } from '#test/support/process.ts';
import { dice } from '#test/support/seed.ts';
import { until } from '#test/support/until.ts';
import { openSurvey } from '#test/support/world.ts';

const SENDERS = 8;
const roll = dice(1);
const key = 'fbk_crash';

export interface Crashes {
  /** Value of DATABASE_URL. */
  readonly url: string;
  readonly responses: number;
  readonly kills: number;
}

export async function surviveKills(t: Test, { kills, responses, url }: Crashes): Promise<void> {
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;

  const launch = (): Started =>
    start(['api/main.ts'], {
      API_PORT: String(port),
      DATABASE_URL: url,
      PUBLIC_URL: base,
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
      BOOTSTRAP_API_KEY: key,
      BOOTSTRAP_PASSWORD: 'Password1',
      RATE_LIMITING_DISABLED: '1',
      DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
      LOG_LEVEL: 'error',
    });
  const isAnswering = async (launched: Started): Promise<void> => {
    await launched.until(/API ready/);
  };

  // A slow receiver has running deliveries at every kill.
  const receiver = await startReceiver(t, (response) => {
    setTimeout(() => response.writeHead(204).end(), roll(15));
  });
  let api = launch();
  t.teardown(() => api.stop('SIGKILL'));
  /** Resolves when the API that was started last answers. */
  let answering = isAnswering(api);
  const startApi = (): Promise<void> => {
    api = launch();
    answering = isAnswering(api);
    return answering;
  };
  await answering;

  const db = openTestDatabase(url);
  t.teardown(() => db.destroy());
  const create = creatorAt(base, key);
  await create('webhooks', { workspaceId: 'ws1', url: receiver.url, triggers: ['responseFinished'] });
  const surveyId = await create('management/surveys', { workspaceId: 'ws1', ...openSurvey });

  const acknowledged = new Set<string>();
  const send = async (): Promise<void> => {
    while (acknowledged.size < responses) {
      try {
        const reply = await fetch(`${base}/api/v1/client/ws1/responses`, {
          method: 'POST',
          body: JSON.stringify({ surveyId, finished: true, data: { q1: 'Yes' } }),
        });
        if (reply.status !== 200) throw new Error(`${reply.status} ${await reply.text()}`);
        const body = (await reply.json()) as { data: { id: string } };
        acknowledged.add(body.data.id);
      } catch (error) {
        // The process was killed, and may or may not have stored this response. Any other error fails the test.
        if (error instanceof Error && /^\d/.test(error.message)) throw error;
        await sleep(20);
        await answering;
      }
    }
  };
  const kill = async (): Promise<void> => {
    for (let count = 1; count <= kills; count += 1) {
      const at = (count * responses) / (kills + 1);
      while (acknowledged.size < at) await sleep(1);
      await sleep(roll(40));
      await api.stop('SIGKILL');
      await startApi();
    }
  };
  await Promise.all([kill(), ...Array.from({ length: SENDERS }, send)]);

  const stored = (await db.selectFrom('responses').select('id').execute()).map(({ id }) => id);
  t.ok(stored.length >= responses);
  const kept = new Set(stored);
  t.same(
    [...acknowledged].filter((id) => !kept.has(id)),
    [],
    'every acknowledged response is stored',
  );

  const isSettled = async (): Promise<boolean> => {
    const due = await db
      .selectFrom('deliveries')
      .select('id')
      .where('dueAt', 'is not', null)
      .limit(1)
      .execute();
    return due.length === 0;
  };
  await until(isSettled, 'every event is delivered', api);

  const byResponse = Map.groupBy(receiver.received, ({ json }) => String(json.data.id));
  t.same(
    stored.filter((id) => !byResponse.has(id)),
    [],
    'every stored response is delivered at least once',
  );
  const unstable = [...byResponse.values()].filter(
    (all) => new Set(all.map(({ headers, text }) => `${headers['webhook-id']} ${text}`)).size !== 1,
  );
  t.same(unstable, [], 'all copies of an event have the same id and the same bytes');
  t.same(
    [...byResponse.keys()].filter((id) => !kept.has(id)),
    [],
    'only stored responses are delivered',
  );
  t.equal(new Set(receiver.received.map(({ headers }) => headers['webhook-id'])).size, stored.length);
  const statuses = await db.selectFrom('deliveries').select('status').distinct().execute();
  t.same(statuses, [{ status: 'delivered' }]);
  t.comment(`${stored.length} responses, ${receiver.received.length} requests, ${kills} kills`);
  t.equal(await api.stop(), 0, 'the last process exits with 0');
}
