import t from 'tap';
import type { Measured, Slice } from '#bench/costs/measure.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { ladderOf } from '#bench/ladder/rungs.ts';

t.test('a step costs what it adds in the same round', async (t) => {
  const slices = (...all: readonly number[]): Slice[] =>
    all.map((cpuUs) => ({ cpuUs, refusedShare: 1, storeCpuUs: 0, perSecond: 1000 }) as Slice);
  const [denied, admitted] = [true, false].map((isDenied) =>
    SCENARIOS.find((one) => one.isDenied === isDenied),
  );
  if (denied === undefined || admitted === undefined) throw new Error('there is no such scenario');
  const measured = new Map<string, Measured>([
    ['bare', { label: 'bare', slices: slices(5, 50, 6) }],
    ['parser', { label: 'parser', slices: slices(7, 53, 8) }],
  ]);
  const { rows, notes } = ladderOf(denied, measured);
  t.equal(rows[0]?.[1], '6.0 (5.5-28.0)');
  t.equal(rows[1]?.[1], '2.0 (2.0-2.5)');
  t.same(notes, []);
  t.match(ladderOf(admitted, measured).notes, ['bare gave wrong replies', 'parser gave wrong replies']);
});
