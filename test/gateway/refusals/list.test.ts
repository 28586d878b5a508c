/** Tests the list of kept refusals: newest first, in pages, and with a search. */
import t, { type Test } from 'tap';
import { type DecisionRecord, type DecisionStore, EXCHANGED_MAX } from '#gateway/refusals/decision-record.ts';
import { MemoryDecisions } from '#gateway/refusals/memory-decisions.ts';
import { RedisDecisions } from '#gateway/refusals/redis-decisions.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { startRedis } from '#test/support/redis.ts';
import { accessTo } from '#test/support/store.ts';
import { until } from '#test/support/until.ts';

const record = (id: string): DecisionRecord => ({ id, at: new Date().toISOString() }) as DecisionRecord;

async function pages(t: Test, store: DecisionStore): Promise<void> {
  t.teardown(() => store.close());
  t.strictSame(await store.list(null, 10), []);
  for (const id of ['a', 'b', 'c', 'd', 'e']) await store.write([record(id)]);
  const ids = async (before: string | null, count: number) =>
    (await store.list(before, count)).map(({ id }) => id).join('');
  t.equal(await ids(null, 2), 'ed');
  t.equal(await ids('d', 2), 'cb');
  t.equal(await ids('b', 2), 'a');
  t.equal(await ids('a', 2), '');
  t.equal(await ids('gone', 2), '', 'a dropped record has no older ones');
  t.equal(await ids(null, 500), 'edcba');
}

t.test('gateways tell each other the clients that they denied most', async (t) => {
  const redis = await startRedis(t);
  const told = (name: string) => {
    const store = new RedisDecisions(accessTo(redis.url));
    t.teardown(() => store.close());
    return (own: Parameters<DecisionStore['exchangeDenied']>[1]) => store.exchangeDenied(name, own);
  };
  const denied = (name: string, count: number) => ({
    name,
    count,
    isExact: true,
    other: 0,
    label: 'items',
    lastAt: 1,
  });
  const [a, b] = [told('a'), told('b')];
  t.strictSame(await a([denied('x', 1)]), []);
  t.strictSame(await b([denied('x', 2)]), [[denied('x', 1)]]);
  t.strictSame(await b([denied('x', 3)]), [[denied('x', 1)]]);
  t.strictSame(await a([]), [[denied('x', 3)]]);
  await told('b')([denied('x', 4)]);
  t.strictSame(await a([]), [[denied('x', 4)]], 'only the newest of a gateway counts');
  await b(Array.from({ length: 300 }, (_, i) => denied(String(i), 1)));
  t.equal((await a([])).flat().length, EXCHANGED_MAX, 'the size of a list is bounded');
  for (let i = 0; i < 70; i++) await told(`gateway ${i}`)([]);
  t.ok((await a([])).length <= 64, 'and so is their number');
  const [key = ''] = await redis.client.keys('*denied*');
  t.ok((await redis.client.pttl(key)) > 0);
});

t.test('in memory', async (t) => pages(t, new MemoryDecisions(Date.now)));

t.test('in Redis', async (t) => {
  const redis = await startRedis(t);
  // Records of the same millisecond are ordered by their ids.
  await pages(t, new RedisDecisions(accessTo(redis.url)));
});

t.test('over the admin listener, refusals are found by text, by policy and by client', async (t) => {
  const rows = ['first', 'second'].map(
    (name) => `name: ${name}, route: "GET /${name}/*", identifier: ip, limit: 1, window: 366d`,
  );
  const gateway = await startTestGateway(t, { policies: policyFile(...rows) });
  const admin = await startTestAdmin(t, gateway);
  const list = async (query = '') => {
    const reply = await fetch(`${admin}/api/decisions?${query}`);
    return (await reply.json()) as { decisions: DecisionRecord[]; next: string | null; message?: string };
  };
  for (let i = 0; i < 4; i++) {
    for (const path of ['/first/a', '/second/b?secret=1'])
      await (await fetch(gateway.origin + path)).arrayBuffer();
  }
  await until(async () => (await list()).decisions.length === 6);
  const found = await list('text=/SECOND/b');
  t.equal(found.decisions.length, 3, 'upper and lower case are equal');
  t.equal((await list('policy=first')).decisions.length, 3);
  t.equal((await list('policy=fir')).decisions.length, 0);
  t.equal((await list('text=secret')).decisions.length, 0, 'the query is not recorded');
  const { identity = '', id = '' } = found.decisions[0] ?? {};
  t.equal((await list(`identity=${identity}`)).decisions.length, 6);
  t.equal((await list(`identity=${identity.slice(1)}`)).decisions.length, 0);
  t.equal((await list(`text=${id}`)).decisions.length, 1);
  t.equal(
    (await list(`before=${id}`)).decisions.length,
    5 - (await list()).decisions.findIndex((one) => one.id === id),
  );
  t.match(await list('unknown=1'), { message: /unknown/ });

  const reply = await fetch(`${admin}/api/decisions/${id}`);
  t.match(await reply.json(), {
    id,
    what: /^GET \/second\/b was refused at/,
    reasons: [/The limit was reached: policy second allows 1/],
    facts: [
      ['Line', /:8, version/],
      ['Counted', /^ip/],
      ['Decided', /alone/],
      ['Retry at', /Z$/],
    ],
    advice: /raise limit/,
  });
});
