/** Tests the history of the last hour: its contents, its end and its size. */
import t from 'tap';
import { families } from '#gateway/observe/metrics/exposition.ts';
import { Metrics } from '#gateway/observe/metrics/metrics.ts';
import { SPAN_MS, SPANS, TrafficHistory } from '#gateway/operate/admin/history.ts';

/** A fixed start of a span, so that no test depends on when it runs. */
const START = 1_000_000 * SPAN_MS;
const ALLOWED = 'floodgate_requests_total allowed';

/** Starts a history of some processes. */
function start(since = START) {
  let now = since;
  const history = new TrafficHistory(since);
  const processes = [new Metrics(), new Metrics()];
  const allowed = processes.map(({ requests }) => requests.of('allowed'));
  return {
    history,
    processes,
    later: (ms: number) => {
      now += ms;
    },
    allow: (times: number, process = 0) => {
      const counted = allowed[process];
      if (counted !== undefined) counted.value += times;
    },
    read: (from = processes) =>
      history.add(
        from.map((metrics) => families(metrics.samples())),
        now,
      ),
    /** The requests of each span, without those that have none, by its number since the start. */
    spans: (): Record<string, number> => {
      const { series, lastSpanAt } = history.traffic();
      const last = (Date.parse(lastSpanAt) - START) / SPAN_MS;
      const counts = (series[ALLOWED] ?? []).map((count, i) => [last - SPANS + 1 + i, count] as const);
      return Object.fromEntries(counts.filter(([, count]) => count > 0));
    },
  };
}

t.test('a span has what the counters of all processes have grown by until the next one begins', async (t) => {
  const { history, processes, later, allow, read, spans } = start();
  allow(5);
  t.strictSame(read(), { at: new Date(START).toISOString(), series: { [ALLOWED]: 5 } }, 'since the start');
  later(4000);
  allow(2, 1);
  t.strictSame(read().series, { [ALLOWED]: 2 });
  later(6000);
  allow(1);
  t.match(
    read(),
    { at: new Date(START).toISOString() },
    'the reading at the start of a span ends the last one',
  );
  later(1000);
  const [first = new Metrics(), second = new Metrics()] = processes;
  first.decisionTime.observe(0.3);
  second.replies.of('2xx').value++;
  allow(3, 1);
  t.strictSame(read().at, new Date(START + SPAN_MS).toISOString());
  t.strictSame(spans(), { 0: 8, 1: 3 });
  const { series } = history.traffic();
  t.strictSame(series['floodgate_replies_total 2xx']?.slice(-2), [0, 1]);
  t.strictSame(series['floodgate_decision_duration_seconds_bucket 0.0005']?.at(-1), 1);
  t.equal(series['floodgate_decision_duration_seconds_bucket 0.00025'], undefined, 'it has not grown');
  t.equal(series[ALLOWED]?.length, SPANS);
});

t.test('rates are unknown at first, then averages over the last five seconds', async (t) => {
  const { history, later, allow, read } = start(START + 7);
  read();
  t.equal(history.rates(), null);
  allow(10);
  later(1000);
  read();
  t.strictSame(history.rates(), { [ALLOWED]: 10 });
  for (let i = 0; i < 7; i++) {
    allow(20);
    later(1000);
    read();
  }
  t.strictSame(history.rates(), { [ALLOWED]: 20 });
  later(10_000);
  allow(30);
  read();
  t.strictSame(history.rates(), { [ALLOWED]: 3 }, 'one reading in ten seconds, while no page is open');
});

t.test(
  'counts nothing twice if a process does not answer once, and nothing of one that has ended',
  async (t) => {
    const { processes, later, allow, read, spans } = start();
    const [first = new Metrics(), second = new Metrics()] = processes;
    allow(5);
    allow(4, 1);
    read();
    later(1000);
    t.strictSame(read([first]).series, {}, 'the counters have fallen');
    later(1000);
    allow(1, 1);
    t.strictSame(read().series, { [ALLOWED]: 1 });
    const replacement = new Metrics();
    replacement.requests.of('allowed').value++;
    // The supervisor adds the counts of a process that has ended.
    t.strictSame(read([first, second, replacement]).series, { [ALLOWED]: 1 });
    t.strictSame(spans(), { 0: 11 });
  },
);

t.test('a gap, such as a machine that sleeps: the spans in it are empty', async (t) => {
  const { later, allow, read, spans } = start();
  allow(5);
  read();
  allow(1);
  later(60 * SPAN_MS);
  t.strictSame(read().at, new Date(START).toISOString());
  allow(2);
  later(500);
  read();
  t.strictSame(spans(), { 0: 6, 60: 2 });
});

t.test('drops spans after an hour, and keeps no empty ones', async (t) => {
  const { history, later, allow, read, spans } = start();
  allow(5);
  later(SPAN_MS * (SPANS - 1));
  read();
  t.strictSame(spans(), { 0: 5 }, 'in the last span of the hour');
  later(SPAN_MS);
  read();
  t.strictSame(history.traffic().series, {});
  allow(1);
  later(SPAN_MS * SPANS * 10);
  read();
  t.strictSame(history.traffic().series, {});
  t.equal(history.traffic().since, new Date(START).toISOString());
});
