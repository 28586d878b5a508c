import t from 'tap';
import type { Measured, Slice } from '#bench/costs/measure.ts';
import { DENIED } from '#bench/costs/scenarios.ts';
import { ladderOf } from '#bench/ladder/rungs.ts';

t.test('a step costs what it adds in the same round', async (t) => {
  const slices = (refusedShare: number, ...all: readonly number[]): Slice[] =>
    all.map((cpuUs) => ({ cpuUs, refusedShare, storeCpuUs: 0, perSecond: 1000 }) as Slice);
  const measured = (share: number) =>
    new Map<string, Measured>([
      ['bare', { label: 'bare', slices: slices(share, 5, 50, 6) }],
      ['parser', { label: 'parser', slices: slices(share, 7, 53, 8) }],
    ]);
  const { rows, notes } = ladderOf(DENIED, measured(1));
  t.equal(rows[0]?.[1], '6.0 (5.5-28.0)');
  t.equal(rows[1]?.[1], '2.0 (2.0-2.5)');
  t.same(notes, []);
  t.match(ladderOf(DENIED, measured(0)).notes, ['bare gave wrong replies', 'parser gave wrong replies']);
});
