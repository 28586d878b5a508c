/** Prometheus' text format; test/docs/observability.test.ts has a real Prometheus read it. */
import t from 'tap';
import { exposition, families, sum } from '#gateway/exposition.ts';
import { counter, gauge } from '#gateway/metrics.ts';

t.test('each family has its help and type once, then its series', async (t) => {
  const one = families([
    counter('a_total', 'What a is.', 1, { policy: 'x', outcome: 'allowed' }),
    gauge('b', 'What b is.', 0.5),
    counter('a_total', 'What a is.', 2, { policy: 'y', outcome: 'allowed' }),
  ]);
  t.equal(
    exposition([one]),
    `# HELP a_total What a is.
# TYPE a_total counter
a_total{policy="x",outcome="allowed"} 1
a_total{policy="y",outcome="allowed"} 2
# HELP b What b is.
# TYPE b gauge
b 0.5
`,
  );
  t.equal(exposition([]), '');
});

t.test('processes are added up series by series; the earliest end of a certificate counts', async (t) => {
  const end = (value: number) => ({ ...gauge('end', 'End.', value), aggregator: 'min' as const });
  const one = families([counter('a_total', 'A.', 1, { policy: 'x' }), end(20)]);
  const two = families([
    counter('a_total', 'A.', 2, { policy: 'x' }),
    counter('a_total', 'A.', 4, { policy: 'y' }),
    end(10),
  ]);
  t.match(exposition([one, two]), /^a_total\{policy="x"\} 3\na_total\{policy="y"\} 4$/m);
  t.match(exposition([one, two]), /^end 10$/m);
  t.match(exposition([[], two, one]), /^end 10$/m);
  t.same(sum([sum([one]), two]), sum([one, two]), 'sums can be added up again');
});

t.test('samples of a histogram are called after it', async (t) => {
  const sample = (suffix: '_bucket' | '_sum' | '_count', value: number, labels = {}) =>
    ({ name: 'h', help: 'H.', type: 'histogram', labels, value, suffix }) as const;
  const one = families([sample('_bucket', 1, { le: '+Inf' }), sample('_sum', 0.25), sample('_count', 1)]);
  t.equal(
    exposition([one, one]),
    '# HELP h H.\n# TYPE h histogram\nh_bucket{le="+Inf"} 2\nh_sum 0.5\nh_count 2\n',
  );
});

t.test('what would end a label, or a line, is escaped', async (t) => {
  const text = exposition([
    families([counter('a_total', 'One \\ two\nthree "four".', 1, { policy: 'a"b\\c\nd' })]),
  ]);
  t.match(text, '# HELP a_total One \\\\ two\\nthree "four".\n');
  t.match(text, 'a_total{policy="a\\"b\\\\c\\nd"} 1\n');
});

t.test('numbers beyond all bounds have the names that Prometheus gives them', async (t) => {
  const text = exposition([
    families([gauge('a', 'A.', Infinity), gauge('b', 'B.', -Infinity), gauge('c', 'C.', NaN)]),
  ]);
  t.match(text, /^a Inf$/m);
  t.match(text, /^b -Inf$/m);
  t.match(text, /^c NaN$/m);
});
