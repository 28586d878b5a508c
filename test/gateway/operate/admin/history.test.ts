/** Tests the history of the last hour: its contents, its end and its size. */
import t from 'tap';
import { type Second, Seconds } from '#gateway/observe/metrics/seconds.ts';
import { SPAN_MS, SPANS, TrafficHistory } from '#gateway/operate/admin/history.ts';

/** A fixed start of a span, so that no test depends on when it runs. */
const START = 1_000_000 * SPAN_MS;

function start() {
  let now = START;
  const seconds = new Seconds();
  const history = new TrafficHistory(() => now);
  return {
    history,
    seconds,
    later: (ms: number) => {
      now += ms;
    },
    allow: (policy: string, times: number, at = now) => {
      for (let i = 0; i < times; i++) {
        seconds.count('requests', 'allowed', at);
        seconds.countPolicy(policy, 'allowed', at);
        seconds.observe('decisionTime', 0.3, at);
      }
    },
    read: () => history.add(seconds.take(now), now),
  };
}

t.test('adds each request to the span in which it arrived, also if it is decided later', async (t) => {
  const { history, seconds, later, allow, read } = start();
  allow('p', 5);
  t.strictSame(read(), [], 'the second is not over');
  later(SPAN_MS + 2500);
  allow('p', 2);
  allow('p', 1, START + 9999);
  seconds.countPolicy('p', 'denied', START + 10_500);
  const growth = read();
  t.strictSame(
    growth.map(({ at, requests, policies }) => [Date.parse(at) - START, requests, policies]),
    [
      [0, { allowed: 6 }, { p: [6, 0, 0, 0, 0] }],
      [SPAN_MS, {}, { p: [0, 1, 0, 0, 0] }],
    ],
  );
  later(1000);
  read();
  const { policies, requests, decisionTime, lastSpanAt } = history.traffic();
  t.strictSame(policies[0]?.allowed?.slice(-3), [0, 6, 2]);
  t.strictSame(policies[0]?.denied?.slice(-2), [0, 1]);
  t.equal(policies[0]?.degraded, undefined, 'a count that was always zero is left out');
  t.equal(policies[0]?.allowed?.length, SPANS);
  t.strictSame(requests.allowed?.slice(-2), [6, 2]);
  t.strictSame(
    decisionTime.slice(-2).map(([, count]) => count),
    [6, 2],
  );
  t.equal(Date.parse(lastSpanAt), START + SPAN_MS);
});

t.test('rates are unknown at first, then those of whole seconds', async (t) => {
  const { history, later, allow, read } = start();
  allow('p', 10);
  read();
  t.equal(history.rates(), null);
  later(1000);
  read();
  t.strictSame(history.rates(), { allowed: 10 });
  for (let i = 0; i < 7; i++) {
    allow('p', 20);
    later(1000);
  }
  allow('p', 500);
  read();
  t.strictSame(history.rates(), { allowed: 20 }, 'the second that is not over does not count');
  later(10_000);
  read();
  t.strictSame(history.rates(), {});
});

t.test('a second that a process reports before the others were asked about it waits', async (t) => {
  const { history, allow, seconds } = start();
  allow('p', 3);
  t.strictSame(history.add(seconds.take(START + 1000), START + 999), []);
  t.equal(history.until, START);
  t.match(history.add([], START + 1000), [{ requests: { allowed: 3 } }]);
});

t.test('drops values after an hour, even if nobody read them', async (t) => {
  const { history, later, allow, read } = start();
  allow('p', 5);
  later(SPAN_MS * (SPANS - 1));
  read();
  t.equal(history.traffic().policies[0]?.allowed?.[0], 5, 'in the last span of the hour');
  later(SPAN_MS);
  t.strictSame(history.traffic().policies, []);
  allow('p', 1);
  later(SPAN_MS * SPANS * 10);
  t.strictSame(read(), []);
  allow('p', 3);
  later(1000);
  read();
  t.strictSame(
    history.traffic().policies[0]?.allowed?.filter((count) => count > 0),
    [3],
  );
});

t.test('a process whose seconds nobody takes keeps the newest minute', async (t) => {
  const { seconds, later, allow } = start();
  for (let i = 0; i < 100; i++) {
    allow('p', 1);
    later(1000);
  }
  const taken: Second[] = seconds.take(START + 100_000);
  t.equal(taken.length, 60);
  t.equal(taken[0]?.at, START / 1000 + 40);
  t.strictSame(seconds.take(START + 100_000), [], 'each is taken once');
});
