/** Tests the history of the last hour: its contents, its end and its size. */
import t from 'tap';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { RINGS_MAX, SPAN_MS, SPANS, TrafficHistory } from '#gateway/operate/admin/history.ts';
import { type PolicyTotals, type Totals, totalsOf } from '#gateway/operate/admin/totals.ts';

const NOTHING: Totals = {
  requests: {},
  policies: new Map(),
  decisionTime: [],
  storeTime: [],
  storeFailures: {},
  degraded: 0,
  upstreamFailures: {},
  protection: null,
  unrecorded: 0,
};

function totals(requests: Record<string, number>, ...policies: Partial<PolicyTotals>[]): Totals {
  const all = policies.map(({ policy = 'p', ...counts }) => {
    const one = { policy, allowed: 0, denied: 0, shadowDenied: 0, degraded: 0, ...counts };
    return [policy, one] as const;
  });
  return { ...NOTHING, requests, policies: new Map(all), decisionTime: [0, requests.allowed ?? 0] };
}

/** The clock is set to a fixed time of the hour, so that no test depends on when it runs. */
function start(): { history: TrafficHistory; later: (ms: number) => void } {
  let now = 1_000_000 * SPAN_MS;
  return { history: new TrafficHistory(() => now), later: (ms) => (now += ms) };
}

t.test('returns the increase of the totals in the current interval', async (t) => {
  const { history, later } = start();
  history.add(totals({ allowed: 5 }, { allowed: 5 }));
  later(SPAN_MS - 1);
  const growth = history.add(totals({ allowed: 7, denied: 1 }, { allowed: 7, denied: 1 }));
  t.strictSame([...growth.policies], [['p', [2, 1, 0, 0]]]);
  t.strictSame(growth.requests, { allowed: 2, denied: 1 });
  later(1);
  t.equal(history.add(totals({ allowed: 7, denied: 1 }, { allowed: 7, denied: 1 })).policies.size, 0);
  history.add(totals({ allowed: 8, denied: 1 }, { allowed: 8, denied: 1 }));
  const { policies, requests, decisionTime, lastSpanAt } = history.traffic();
  t.equal(policies.length, 1);
  t.strictSame(policies[0]?.allowed?.slice(-3), [0, 7, 1]);
  t.strictSame(policies[0]?.denied?.slice(-3), [0, 1, 0]);
  t.equal(policies[0]?.degraded, undefined, 'a count that was always zero is left out');
  t.equal(policies[0]?.allowed?.length, SPANS);
  t.strictSame(requests.allowed?.slice(-2), [7, 1]);
  t.strictSame(
    decisionTime.slice(-2).map(([, count]) => count),
    [7, 1],
  );
  t.equal(Date.parse(lastSpanAt), 1_000_001 * SPAN_MS);
});

t.test('drops values after an hour, even if nobody read them', async (t) => {
  const { history, later } = start();
  history.add(totals({ allowed: 5 }, { allowed: 5 }));
  later(SPAN_MS * (SPANS - 1));
  t.equal(history.traffic().policies[0]?.allowed?.[0], 5, 'in the last interval of the hour');
  later(SPAN_MS);
  t.strictSame(history.traffic().policies, []);
  history.add(totals({ allowed: 6 }, { allowed: 6 }));
  later(SPAN_MS * SPANS * 10);
  history.add(totals({ allowed: 9 }, { allowed: 9 }));
  t.strictSame(
    history.traffic().policies[0]?.allowed?.filter((count) => count > 0),
    [3],
  );
});

t.test('replacing a process subtracts nothing', async (t) => {
  const { history } = start();
  history.add(totals({ allowed: 5 }, { allowed: 5 }));
  const growth = history.add(totals({ allowed: 4 }, { allowed: 4 }));
  t.equal(growth.policies.size, 0);
  t.strictSame(growth.requests, {});
});

t.test('rings are bounded, and drop values after an hour', async (t) => {
  const { history, later } = start();
  const many = (from: number, count: number, allowed: number): Partial<PolicyTotals>[] =>
    Array.from({ length: count }, (_, i) => ({ policy: `p${from + i}`, allowed }));
  history.add(totals({}, ...many(0, RINGS_MAX + 50, 1)));
  t.equal(history.policyRings, RINGS_MAX);
  later(SPAN_MS * SPANS);
  history.traffic();
  history.add(totals({}, ...many(5000, 20, 1)));
  t.equal(history.policyRings, 20, 'reading a ring does not extend its life');
});

t.test('reads totals from the metrics of several processes', async (t) => {
  const one = new Metrics();
  one.count('allowed');
  one.decisionTime.observe(0.3);
  one.decisionTime.observe(60_000);
  const read = totalsOf([families(one.samples()), families(one.samples())]);
  t.equal(read.requests.allowed, 2);
  t.strictSame([read.decisionTime[0], read.decisionTime[1], read.decisionTime.at(-1)], [0, 2, 2]);
  t.equal(
    read.decisionTime.reduce((all, count) => all + count, 0),
    4,
  );
});
