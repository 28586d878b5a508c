import t from 'tap';
import { type BodyLength, unitsOf } from '#gateway/limiter/units.ts';
import type { Cost } from '#gateway/policy/policy.ts';

const NO_BODY: BodyLength = { hasBody: false, contentLength: null };

function units(cost: Cost, rawHeaders: readonly string[] = [], body = NO_BODY): number {
  return unitsOf({ cost }, 100, rawHeaders, body);
}

t.test('reads a cost header as a whole number from one to the limit', async (t) => {
  const cost: Cost = { kind: 'header', header: 'x-cost' };
  const cases: readonly (readonly [headers: readonly string[], units: number])[] = [
    [[], 1],
    [['X-Cost', '7'], 7],
    [['x-cost', ' 7 '], 7],
    [['X-COST', '100'], 100],
    [['X-Cost', '101'], 100],
    [['X-Cost', '9'.repeat(15)], 100],
    [['X-Cost', '9'.repeat(16)], 100],
    [['X-Cost', '0'], 1],
    [['X-Cost', '-5'], 1],
    [['X-Cost', '5.5'], 1],
    [['X-Cost', '1e3'], 1],
    [['X-Cost', ''], 1],
    [['X-Cost', '3', 'Accept', '9', 'x-cost', '8', 'X-Cost', 'lots'], 8],
    [['X-Costs', '9'], 1],
  ];
  for (const [headers, expected] of cases) t.equal(units(cost, headers), expected, headers.join(' '));
});

t.test('a reply of unknown length reserves a hundredth of what can be used at once', async (t) => {
  const reserveOf = (reserve: number | null, capacity: number): number =>
    unitsOf({ cost: { kind: 'reply-bytes', reserve } }, capacity, [], NO_BODY);
  t.equal(reserveOf(null, 40_000), 400);
  t.equal(reserveOf(null, 101), 2);
  t.equal(reserveOf(null, 1), 1);
  t.equal(reserveOf(7, 40_000), 7);
});

t.test('the cost of a body is its announced length', async (t) => {
  const cost: Cost = { kind: 'body-bytes', unannounced: 50 };
  t.equal(units(cost), 1, 'no body');
  t.equal(units(cost, [], { hasBody: false, contentLength: 0 }), 1, 'an empty body');
  t.equal(units(cost, [], { hasBody: true, contentLength: 7 }), 7);
  t.equal(units(cost, [], { hasBody: true, contentLength: 101 }), 101, 'a body longer than the limit');
  t.equal(units(cost, [], { hasBody: true, contentLength: null }), 50, 'a chunked body');
});
