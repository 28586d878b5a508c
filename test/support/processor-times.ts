/** Where a run of the tests spent the processors. */

/** Milliseconds of processor time. */
export interface Used {
  readonly name: string;
  readonly own: number;
  /** Of the processes that it started. */
  readonly started: number;
}

const SHOWN = 30;

/** The files that took most, for people to read. */
export function slowest(used: readonly Used[]): string[] {
  const all = new Map<string, Used>();
  for (const { name, own, started } of used) {
    const known = all.get(name) ?? { own: 0, started: 0 };
    all.set(name, { name, own: known.own + own, started: known.started + started });
  }
  const rows = [...all.values()].sort((a, b) => b.own + b.started - (a.own + a.started));
  return [
    'seconds of processor time: own, of started processes',
    row('all', rows),
    ...rows.slice(0, SHOWN).map((one) => row(one.name, [one])),
  ];
}

function row(name: string, used: readonly Used[]): string {
  const seconds = (times: readonly number[]): string =>
    (times.reduce((sum, time) => sum + time, 0) / 1000).toFixed(1).padStart(8);
  return `${seconds(used.map(({ own }) => own))} ${seconds(used.map(({ started }) => started))} ${name}`;
}
