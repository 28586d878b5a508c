/** Numbers of clients, the most frequent ones, and spans of time: bounded, and right within what is stated. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { Distinct } from '#gateway/workbench/replay/distinct.ts';
import { Most } from '#gateway/workbench/replay/most.ts';
import { Timeline } from '#gateway/workbench/replay/timeline.ts';

const IP = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
const digester = new Digester('salt');

t.test('distinct: exact, then within 2 %', async (t) => {
  const distinct = new Distinct();
  for (let i = 0; i < 60_000; i++) {
    const { words } = digester.identify(IP, `address ${i}`);
    distinct.add(words);
    distinct.add(words);
    if (i === 0 || i === 31 || i === 4095) {
      t.equal(distinct.count, i + 1);
      t.notOk(distinct.isEstimate);
    }
    if (i === 4999 || i === 19_999 || i === 59_999) {
      t.ok(distinct.isEstimate);
      t.ok(Math.abs(distinct.count / (i + 1) - 1) < 0.025, `${distinct.count} of ${i + 1}`);
    }
  }
});

t.test('most: exact for few, and whoever is frequent is found among many', async (t) => {
  const few = new Most();
  for (const identity of ['a', 'b', 'a', 'c', 'a', 'b']) few.add(identity);
  t.strictSame(few.list(2), [
    { identity: 'a', count: 3 },
    { identity: 'b', count: 2 },
  ]);
  t.ok(few.isExact);
  const many = new Most();
  for (let i = 0; i < 10_000; i++) {
    many.add(`once ${i}`);
    if (i % 10 === 0) many.add('often');
  }
  t.notOk(many.isExact);
  t.equal(many.list(1)[0]?.identity, 'often');
});

t.test('timeline: spans grow, and nothing is lost', async (t) => {
  const timeline = new Timeline();
  const begin = Date.UTC(2026, 10, 22, 8, 0, 7);
  t.strictSame(timeline.spans, []);
  for (let hour = 0; hour < 100; hour++) {
    for (let i = 0; i < 30; i++) timeline.add(begin + hour * 3_600_000 + i * 1000, i % 3 === 0);
  }
  const { spans, widthMs } = timeline;
  t.ok(spans.length <= 240 && spans.length > 60, `${spans.length} of ${widthMs}`);
  t.equal(
    spans.reduce((sum, { denied }) => sum + denied, 0),
    1000,
  );
  t.equal(
    spans.reduce((sum, { allowed }) => sum + allowed, 0),
    2000,
  );
  t.ok(spans.every(({ at }) => at % widthMs === 0));
});
