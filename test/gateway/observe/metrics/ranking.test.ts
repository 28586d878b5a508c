/** Tests the list of the clients denied most. */
import t from 'tap';
import { mergeRanked, type Ranked, Ranking, rankedSince } from '#gateway/observe/metrics/ranking.ts';
import { mostLimited } from '#gateway/operate/admin/top.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import { EXCHANGED_MAX } from '#gateway/refusals/decision-record.ts';

const NOW = 1_800_000_000_000;

/** Two names that come often, between a thousand that come once each. */
function flooded(places: number, offset = 0): Ranking {
  const ranking = new Ranking(places);
  for (let i = 0; i < 1000; i++) {
    if (i % 2 === 0) ranking.count('often', 'items', NOW);
    if (i % 5 === 0) ranking.count('less', '', NOW);
    ranking.count(`once ${offset + i}`, '', NOW);
  }
  return ranking;
}

function reportOf(limited: Ranking): ProcessReport {
  return {
    storeAvailable: true,
    storeOutage: null,
    upstreamOutage: null,
    replicas: 1,
    limited: limited.list(NOW),
    matches: { verdict: 'open', paths: [], otherHosts: [], hasForeignPages: false },
  };
}

t.test('names that come often stay, and their counts are at most the true ones', async (t) => {
  const [often, less, ...others] = flooded(64).list(NOW);
  t.strictSame(often, { name: 'often', count: 500, isExact: false, other: 0, label: 'items', lastAt: NOW });
  t.match(less, { name: 'less', count: 200 });
  t.ok(others.length < 2 * 64);
  t.ok(others.every(({ count }) => count === 1));
  const workers = [0, 1000, 2000].map((offset) => reportOf(flooded(256, offset)));
  t.match(mostLimited(workers, [], NOW, 0).limited, [
    { identity: 'often', denied: 1500, isExact: false },
    { identity: 'less', denied: 600 },
    { denied: 1 },
  ]);
  const ranking = new Ranking(2);
  for (const name of ['a', 'a', 'a', 'b', 'c', 'c', 'd', 'e', 'b']) ranking.count(name, '', NOW);
  const counts = ranking.list(NOW).map(({ name, count }) => [name, count]);
  t.strictSame(
    counts,
    [
      ['a', 3],
      ['c', 2],
      ['e', 1],
      ['b', 1],
    ],
    'a dropped name begins anew',
  );
});

t.test('a count is exact only if no list can have dropped the name', async (t) => {
  const whole = [ranked('a', 3), ranked('b', 2)];
  const full = [ranked('a', 4), { ...ranked('c', 1), isExact: false }];
  const exact = (lists: Ranked[][]) => mergeRanked(lists).map(({ name, isExact }) => [name, isExact]);
  t.strictSame(exact([whole, [ranked('a', 1)]]), [
    ['a', true],
    ['b', true],
  ]);
  t.strictSame(exact([whole, full]), [
    ['a', true],
    ['b', false],
    ['c', false],
  ]);
});

t.test('a count is not exact if another gateway may have left the client out of what it tells', async (t) => {
  const here = new Ranking(256);
  for (let i = 0; i < 100; i++) here.count('here', '', NOW);
  const withListOf = (length: number) => {
    const list = Array.from({ length }, (_, i) => ranked(`there ${i}`, 1));
    return mostLimited([reportOf(here)], [list], NOW, 0).limited[0];
  };
  t.match(withListOf(EXCHANGED_MAX - 1), { identity: 'here', denied: 100, isExact: true });
  t.match(withListOf(EXCHANGED_MAX), { identity: 'here', denied: 100, isExact: false });
});

function ranked(name: string, count: number): Ranked {
  return { name, count, isExact: true, other: 0, label: 'items', lastAt: NOW };
}

t.test('denied identities are forgotten after an hour at the latest', async (t) => {
  const limited = new Ranking(256);
  const start = 1_800_000_000_000;
  const minute = 60_000;
  limited.count('a', 'items', start);
  limited.count('a', 'keys', start + 31 * minute);
  limited.count('b', 'items', start + 31 * minute);
  const counts = (now: number) => limited.list(now).map(({ name, count }) => [name, count]);
  t.strictSame(counts(start + 59 * minute), [
    ['a', 2],
    ['b', 1],
  ]);
  t.strictSame(counts(start + 60 * minute), [
    ['a', 1],
    ['b', 1],
  ]);
  t.equal(rankedSince(start + 59 * minute), start);
  t.strictSame(counts(start + 180 * minute), []);
});

t.test('the denied identities of several processes are added', async (t) => {
  const one = { name: 'a', count: 2, isExact: true, other: 1, label: 'items', lastAt: 1 };
  const other = { name: 'b', count: 4, isExact: true, other: 0, label: 'items', lastAt: 1 };
  const merged = mergeRanked([[one, other], [{ ...one, count: 3, label: 'keys', lastAt: 2 }]]);
  t.strictSame(merged, [{ name: 'a', count: 5, isExact: true, other: 2, label: 'keys', lastAt: 2 }, other]);
});
