/** The scheduler is one query: which deliveries get a place, and how it finds them. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { dueDeliveries, PLACES } from '#api/events/deliveries.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { startApi } from '#test/support/api-app.ts';
import { planOf } from '#test/support/query-plan.ts';
import { addWorkspaceOf } from './support.ts';

const NOW = Date.UTC(2026, 0, 2);
const at = (ms: number): string => toTimestamp(NOW + ms);
const now = at(0);

interface Hook {
  /** The organization, with a workspace of the same name. */
  readonly of?: string;
  readonly isQuick?: 0 | 1;
  readonly hangs?: number;
  readonly pausedUntil?: string | null;
  /** Numbers of deliveries: due, in progress, and due later. */
  readonly due?: number;
  readonly running?: number;
  readonly later?: number;
  /** How long they are due. */
  readonly age?: number;
}

async function start(t: Test) {
  const api = await startApi(t);
  const { db } = api.context;
  const known = new Set<string>();
  const add = async (id: string, hook: Hook): Promise<void> => {
    const { of = 'o', isQuick = 1, hangs = 0, pausedUntil = null, age = 0 } = hook;
    const row = { createdAt: now, updatedAt: now };
    const event = { surveyId: 's', responseId: 'r', type: 'responseCreated', payload: '{}' } as const;
    if (!known.has(of)) {
      known.add(of);
      await addWorkspaceOf(api, of, of);
      await db
        .insertInto('events')
        .values({ ...event, id: `event-${of}`, createdAt: now, workspaceId: of, mailsDueAt: null })
        .execute();
    }
    await db
      .insertInto('webhooks')
      .values({
        ...{ ...row, id, workspaceId: of, name: null, url: 'https://hooks.example.com/', source: 'user' },
        ...{ triggers: '[]', surveyIds: '[]', secret: 'whsec_AAAA', isQuick, hangs, pausedUntil },
      })
      .execute();
    const deliveries = (kind: string, count: number, dueAt: (i: number) => string, lease: string | null) =>
      Array.from({ length: count }, (_, i) => ({
        ...{ ...row, id: `${id}-${kind}${i}`, eventId: `event-${of}`, webhookId: id },
        ...{ status: 'pending' as const, attemptCount: 0, failureCount: 0, dueAt: dueAt(i), lease },
      }));
    const rows = [
      ...deliveries('due', hook.due ?? 0, (i) => at(i - age - 10_000), null),
      ...deliveries('running', hook.running ?? 0, () => at(5_000), 'another process'),
      ...deliveries('later', hook.later ?? 0, () => at(1), null),
    ];
    if (rows.length > 0) await db.insertInto('deliveries').values(rows).execute();
  };
  const chosen = async (places = PLACES, time = NOW): Promise<readonly string[]> =>
    (await dueDeliveries(time, places).execute(db)).rows.map(({ id }) => id);
  /** How many deliveries of each webhook, or of those with the same first letter. */
  const counts = async (places = PLACES, time = NOW): Promise<Readonly<Record<string, number>>> => {
    const groups = Map.groupBy(await chosen(places, time), (id) => id.split(/[-\d]/)[0] ?? '');
    return Object.fromEntries([...groups].map(([name, all]) => [name, all.length]).sort());
  };
  return { ...api, db, add, chosen, counts };
}

t.test('the deliveries of a webhook that are due longest, at most four with those in progress', async (t) => {
  const { add, chosen, counts } = await start(t);
  await add('a', { due: 2_000, later: 3 });
  await add('b', { due: 3, running: 2 });
  await add('c', { due: 2, running: 4 });
  await add('d', { later: 2 });
  t.same(await counts(), { a: 4, b: 2 });
  t.same(
    (await chosen()).filter((id) => id.startsWith('a')),
    ['a-due0', 'a-due1', 'a-due2', 'a-due3'],
  );
  t.same(await counts(PLACES, NOW + 1), { a: 4, b: 2, d: 2 }, 'and what has become due');
  t.same(
    await counts(PLACES, NOW + 5_000),
    { a: 4, b: 4, c: 4, d: 2 },
    'a lease that has expired is due again',
  );
  t.equal((await chosen(3)).length, 3);
});

t.test('organizations get places in turn, and in each of them the webhooks', async (t) => {
  const { add, chosen } = await start(t);
  for (let i = 0; i < 8; i += 1) await add(`old${i}`, { of: 'o', due: 9, age: 3_600_000 });
  await add('new', { of: 'p', due: 2 });
  await add('busy', { of: 'q', due: 2, running: 2, age: 7_200_000 });
  const order = await chosen();
  t.same(order.slice(0, 4), ['old0-due0', 'new-due0', 'old1-due0', 'new-due1'], 'not only the oldest');
  t.equal(order.indexOf('busy-due0'), 4, 'who has two attempts in progress comes after two of others');
  const first = order.filter((id) => id.startsWith('old')).slice(0, 8);
  t.equal(new Set(first.map((id) => id.split('-')[0])).size, 8, 'each webhook before a second one of any');
});

t.test('an organization has a quarter of the places', async (t) => {
  const { add, counts } = await start(t);
  for (let i = 0; i < 20; i += 1) await add(`quick${i}`, { due: 4 });
  t.same(await counts(), { quick: 32 });
  for (let i = 0; i < 4; i += 1) await add(`running${i}`, { running: 4 });
  t.same(await counts(), { quick: 16 }, 'those in progress count');
  await add('other', { of: 'p', due: 4 });
  t.same(await counts(), { other: 4, quick: 16 });
});

t.test('a quarter of all places is kept for receivers that are not slow', async (t) => {
  const { add, counts } = await start(t);
  for (let i = 0; i < 60; i += 1)
    await add(`slow${i}`, { of: `o${i % 10}`, due: 4, isQuick: 0, age: 3_600_000 });
  t.same(await counts(), { slow: 96 });
  for (let i = 0; i < 12; i += 1) await add(`quick${i}`, { of: `p${i % 3}`, due: 4 });
  t.same(await counts(), { quick: 32, slow: 96 });
  for (let i = 0; i < 24; i += 1) await add(`running${i}`, { of: `q${i}`, running: 4, isQuick: 0 });
  t.same(await counts(), { quick: 48 }, 'quick ones may have more, and all processes count together');
});

t.test(
  'a webhook gets nothing until its pause is over, or while its workspace is being deleted',
  async (t) => {
    const { add, counts, db } = await start(t);
    await add('a', { due: 5, hangs: 3, pausedUntil: at(1) });
    await add('b', { due: 5, hangs: 3, pausedUntil: now });
    await add('e', { due: 5, hangs: 9, pausedUntil: at(60_001) });
    t.same(await counts(), { b: 4, e: 4 }, 'the pause of `e` was written before the clock was set back');
    await add('f', { of: 'p', due: 1 });
    await db.updateTable('workspaces').set({ deletingAt: now }).where('id', '=', 'o').execute();
    t.same(await counts(), { f: 1 });
  },
);

t.test('while more webhooks wait than there are places, each gets one', async (t) => {
  const { add, chosen } = await start(t);
  for (let i = 0; i < 130; i += 1) await add(`hook${i}`, { of: `o${i % 10}`, due: 2, age: i });
  const webhooks = (await chosen()).map((id) => id.split('-')[0]);
  t.equal(webhooks.length, PLACES);
  t.equal(new Set(webhooks).size, PLACES);
});

t.test('the query reads the indexes of due and of leased deliveries, and never scans a table', async (t) => {
  const { add, db } = await start(t);
  for (let i = 0; i < 140; i += 1)
    await add(`hook${i}`, { of: `o${i % 5}`, due: 15, running: i % 28 === 0 ? 1 : 0 });
  await sql`analyze`.execute(db);
  const plan = await planOf(db, dueDeliveries(NOW, PLACES).compile(db));
  for (const line of plan) t.notMatch(line, /SCAN "?(deliveries|d|n)\b/, line);
  t.match(plan.join('\n'), /deliveries_due/);
  t.match(plan.join('\n'), /deliveries_leased/);
});
