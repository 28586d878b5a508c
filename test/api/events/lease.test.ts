/** Webhooks get leases in turn, and finding the next one reads indexes, however long the backlog is. */
import t from 'tap';
import { createAttemptLimits } from '#api/events/concurrency.ts';
import { findHeads, headsQuery, leaseDeliveries, leaseQuery } from '#api/events/lease.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db } = api.context;
const now = '2026-01-02T00:00:00.000Z';
const later = '2026-01-02T00:00:10.000Z';

await db
  .insertInto('events')
  .values({
    id: 'e1',
    createdAt: now,
    workspaceId,
    surveyId: 's1',
    responseId: 'r1',
    type: 'responseCreated',
    snapshot: null,
    payload: '{"event":"responseCreated"}',
    fannedOutAt: now,
  })
  .execute();

async function addWebhook(id: string): Promise<void> {
  await db
    .insertInto('webhooks')
    .values({
      id,
      createdAt: now,
      updatedAt: now,
      workspaceId,
      name: null,
      url: 'https://hooks.example.com/',
      source: 'user',
      triggers: '[]',
      surveyIds: '[]',
      secret: 'whsec_AAAA',
    })
    .execute();
}

async function addDeliveries(webhookId: string, count: number, dueAt: string | null): Promise<void> {
  await db
    .insertInto('deliveries')
    .values(
      Array.from({ length: count }, (_, i) => ({
        id: `${webhookId}-${dueAt}-${i}`,
        createdAt: now,
        updatedAt: now,
        eventId: 'e1',
        webhookId,
        status: dueAt === null ? ('delivered' as const) : ('pending' as const),
        attemptCount: 0,
        failureCount: 0,
        dueAt,
        lease: null,
      })),
    )
    .execute();
}

for (const id of ['a', 'b', 'c', 'd']) await addWebhook(id);
await addDeliveries('a', 2_000, now);
await addDeliveries('b', 3, later);
await addDeliveries('c', 2, now);
await addDeliveries('c', 2, later);
await addDeliveries('d', 5, null);

t.test('takes webhooks in turn, and only those with deliveries that are due', async (t) => {
  const ids = async (after: string, time: string, limit?: number) => {
    const { due, next } = await findHeads(db, after, time, limit);
    return { due: due.map(({ webhookId }) => webhookId), next };
  };
  t.same(await ids('', now), { due: ['a', 'c'], next: null });
  t.same(await ids('', later), { due: ['a', 'b', 'c'], next: null });
  t.same(await ids('a', later), { due: ['b', 'c'], next: null });
  t.same(
    await ids('', now, 2),
    { due: ['a'], next: 'b' },
    'a step examines a bounded number of webhooks, due or not',
  );
  t.same(await ids('b', now, 2), { due: ['c'], next: null });
  t.same(await ids('c', later), { due: [], next: null });
});

t.test('a lease takes the deliveries that are due longest, once', async (t) => {
  const lease = { name: 'l1', until: later };
  const wanted = { webhookId: 'c', count: 3, now };
  const first = await leaseDeliveries(db, wanted, lease);
  t.same(first.map(({ id }) => id).sort(), [`c-${now}-0`, `c-${now}-1`]);
  t.match(first[0], {
    attemptCount: 1,
    failureCount: 1,
    lease: 'l1',
    webhookId: 'c',
    workspaceId,
    payload: '{"event":"responseCreated"}',
  });
  t.same(await leaseDeliveries(db, wanted, lease), []);
  const some = await leaseDeliveries(db, { webhookId: 'a', count: 3, now }, lease);
  t.equal(some.length, 3, 'at most as many as requested');
});

t.test('both queries read the index of due deliveries, and never scan a table', async (t) => {
  const heads = await planOf(db, headsQuery('', 200).compile(db));
  const lease = await planOf(
    db,
    leaseQuery(db, { webhookId: 'a', count: 4, now }, { name: 'l2', until: later }),
  );
  for (const line of [...heads, ...lease]) t.notMatch(line, /SCAN (deliveries|webhooks|events)\b/, line);
  t.match(heads.join('\n'), /SEARCH deliveries USING COVERING INDEX deliveries_due/);
  t.match(
    lease.join('\n'),
    /SEARCH deliveries USING (COVERING )?INDEX deliveries_due \(webhookId=\? AND dueAt<\?\)/,
  );
});

t.test('concurrent attempts are bounded: for a webhook, a workspace, a receiver, and in total', async (t) => {
  const limits = createAttemptLimits();
  const other = (id: string) => ({
    ...{ webhookId: id, workspaceId: `w${id}`, organizationId: `o${id}`, receiver: `https://${id}.example` },
  });
  const head = { ...other('a'), workspaceId: 'w' };
  for (const id of ['a', 'b', 'c', 'd', 'e', 'f', 'z']) limits.record(other(id).receiver, 10);
  for (let i = 0; i < 83; i += 1) limits.record(other(`x${i}`).receiver, 10);
  t.equal(limits.available(head), 4);
  const release = limits.acquire(head);
  for (let i = 0; i < 3; i += 1) limits.acquire(head);
  t.equal(limits.available(head), 0);
  for (const id of ['b', 'c'])
    for (let i = 0; i < 4; i += 1) limits.acquire({ ...other(id), workspaceId: 'w' });
  for (let i = 0; i < 3; i += 1) limits.acquire({ ...other('d'), workspaceId: 'w' });
  t.equal(limits.available({ ...other('e'), workspaceId: 'w' }), 1, 'one place is left');
  for (let i = 0; i < 30; i += 1) limits.acquire({ ...other(`f${i}`), receiver: 'https://f.example' });
  t.equal(limits.available({ ...other('f'), receiver: 'https://f.example' }), 2, 'two places are left');
  for (let i = 0; i < 83; i += 1) limits.acquire(other(`x${i}`));
  t.ok(limits.isExhausted());
  t.equal(limits.available(other('z')), 0);
  release();
  release();
  t.notOk(limits.isExhausted());
  t.equal(limits.available(head), 1, 'releasing twice gives one place back');
});

t.test('one organization has a quarter of all places, with any number of workspaces and receivers', (t) => {
  const limits = createAttemptLimits();
  const of = (organizationId: string, i: number) => ({
    ...{ webhookId: `h${i}`, workspaceId: `w${i}`, organizationId, receiver: `https://${i}.example` },
  });
  for (let i = 0; i < 42; i += 1) limits.record(of('o', i).receiver, 10);
  for (let i = 0; i < 31; i += 1) limits.acquire(of('o', i));
  t.equal(limits.available(of('o', 40)), 1);
  limits.acquire(of('o', 40));
  t.equal(limits.available(of('o', 41)), 0);
  t.equal(limits.available(of('p', 41)), 4);
  t.end();
});

t.test('a quarter of all places is kept for receivers that are known to be quick', (t) => {
  const limits = createAttemptLimits();
  const of = (organizationId: string, workspaceId: string, i: number) => ({
    ...{ webhookId: `h${i}`, workspaceId, organizationId, receiver: `https://${i}.example` },
  });
  limits.record('https://1.example', 1_000);
  limits.record('https://2.example', 1_001);
  const places = (organizationId: string, workspaceId: string): number[] =>
    [1, 2, 3].map((i) => limits.available(of(organizationId, workspaceId, i)));
  const releases = Array.from({ length: 12 }, (_, i) => limits.acquire(of('o', 'w', 100 + i)));
  t.strictSame(places('o', 'w'), [4, 0, 0], 'of a workspace: a quick, a slow and an unknown receiver');
  for (let i = 0; i < 12; i += 1) releases.push(limits.acquire(of('o', `w${i}`, 200 + i)));
  t.strictSame(places('o', 'other'), [4, 0, 0], 'of an organization');
  for (let i = 0; i < 72; i += 1) releases.push(limits.acquire(of(`o${i}`, `v${i}`, 300 + i)));
  t.strictSame(places('p', 'p'), [4, 0, 0], 'of all');
  for (const release of releases) release();
  t.strictSame(places('o', 'w'), [4, 4, 4]);
  const quick = Array.from({ length: 32 }, (_, i) => of('o', `w${i}`, 400 + i));
  for (const one of quick) {
    limits.record(one.receiver, 10);
    releases.push(limits.acquire(one));
  }
  t.strictSame(places('o', 'w'), [0, 0, 0], 'quick ones may have all places');
  t.end();
});

t.test('a receiver whose median is over a second has half of its share', (t) => {
  const limits = createAttemptLimits();
  const receiver = 'https://slow.example';
  const one = (i: number) => ({
    ...{ webhookId: `h${i}`, workspaceId: `w${i}`, organizationId: `o${i}`, receiver },
  });
  for (let i = 0; i < 15; i += 1) limits.acquire(one(i));
  const room = () => limits.available(one(99));
  t.equal(room(), 4);
  for (let i = 0; i < 4; i += 1) limits.record(receiver, 1_000);
  for (let i = 0; i < 4; i += 1) limits.record(receiver, 1_001);
  t.equal(room(), 1, 'of 16');
  limits.record(receiver, 10);
  t.equal(room(), 4, 'half of the last nine are fast');
  limits.record(receiver, 2_000);
  t.equal(room(), 1, 'and only the last nine count');
  t.end();
});
