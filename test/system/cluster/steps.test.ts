/** Charges with keys on several nodes of a Cluster: never too many admitted, and nothing charged for a denial. */
import t from 'tap';
import { keySlot } from '#gateway/store/slot-table.ts';
import { startLimiter } from '#test/support/guarded-limiter.ts';
import { startCluster } from '#test/support/redis-cluster.ts';
import { burst, chargeOf, part, policy, spend, unproven } from '#test/support/spend.ts';
import { until } from '#test/support/until.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

const cluster = await startCluster(t, ['--cluster-require-full-coverage', 'no']);
const { nodes } = cluster;

/** Returns the count under a key, in its window. */
async function counted(key: string): Promise<number> {
  const slot = keySlot(key);
  const node = nodes.find(({ slots: [first, last] }) => slot >= first && slot <= last);
  return Number((await node?.client.get(key)) ?? 0) % 2 ** 32;
}

t.test('many replicas, many identities, each on a node of its own: exact', async (t) => {
  const limiters = await Promise.all([1, 2, 3].map(() => startLimiter(t, cluster.url)));
  await insideLongWindow();
  const wide = policy('wide', 200, LONG_WINDOW_SECONDS);
  const narrow = policy('narrow', 20, LONG_WINDOW_SECONDS);
  const addresses = ['address-a', 'address-b'];
  const keys = Array.from({ length: 8 }, (_, i) => `key-${i}`);
  const admitted = new Map<string, number>();
  await Promise.all(
    limiters.flatMap((limiter) =>
      addresses.flatMap((address) =>
        keys.map(async (key) => {
          for (let i = 0; i < 15; i++) {
            const passed = await burst(limiter, chargeOf(part(wide, address), part(narrow, key)), 2);
            for (const who of [address, key]) admitted.set(who, (admitted.get(who) ?? 0) + passed);
          }
        }),
      ),
    ),
  );
  for (const key of keys) {
    t.ok((admitted.get(key) ?? 0) <= 20, `${key}: ${admitted.get(key)} of 20`);
    const kept = part(narrow, key).key;
    await until(async () => (await counted(kept)) === (admitted.get(key) ?? 0));
  }
  for (const address of addresses) {
    const kept = part(wide, address).key;
    await until(async () => (await counted(kept)) === (admitted.get(address) ?? 0));
    t.ok((admitted.get(address) ?? 0) <= 200);
  }
  const total = keys.reduce((sum, key) => sum + (admitted.get(key) ?? 0), 0);
  t.equal(total, 160, 'identities without a race get their whole limit');
});

t.test(
  'invented credentials write nothing on their nodes once their address has used up its limit',
  async (t) => {
    for (const { client } of nodes) await client.flushall();
    const limiter = await startLimiter(t, cluster.url);
    await insideLongWindow();
    const byKey = policy('keys', 10, LONG_WINDOW_SECONDS);
    let admitted = 0;
    for (let i = 0; i < 30; i++) {
      admitted += await burst(limiter, chargeOf(...unproven(byKey, `invented-${i}`, 'one-address')), 1);
    }
    t.equal(admitted, 10, 'one limit for all invented credentials');
    const sizes = await Promise.all(nodes.map(({ client }) => client.dbsize()));
    const control = 3;
    t.ok(sizes.reduce((sum, size) => sum + size, 0) <= 10 + 1 + control, `${sizes} keys`);
  },
);

t.test(
  'a step that fails: the request is decided locally, and charges on other nodes are given back',
  async (t) => {
    const limiter = await startLimiter(t, cluster.url, { budgetMs: 500 });
    const p = policy('p', 10, LONG_WINDOW_SECONDS);
    const q = policy('q', 10, LONG_WINDOW_SECONDS);
    await insideLongWindow();
    const onNode = (index: number, of: typeof p): string => {
      for (let i = 0; ; i++) {
        const slot = keySlot(part(of, `${index}-${i}`).key);
        const [first, last] = nodes[index]?.slots ?? [0, 0];
        if (slot >= first && slot <= last) return `${index}-${i}`;
      }
    };
    const [first, second] = [part(p, onNode(1, p)), part(q, onNode(0, q))];
    t.equal(await burst(limiter, chargeOf(first, second), 1), 1);
    await until(async () => (await counted(first.key)) === 1);
    nodes[0].freeze();
    const answer = await spend(limiter, chargeOf(first, second));
    t.equal(answer.kind === 'spent' && answer.admitted, true, 'decided without the store');
    nodes[0].thaw();
    await until(async () => (await counted(first.key)) === 2);
    await until(async () => (await counted(second.key)) === 2);
  },
);
