/** One request at a time: how long its caller waits, and what processors do for it. */
import { median, quantile } from '../statistics.ts';
import type { Operation } from './operations.ts';
import type { Service } from './service.ts';

const GOAL_MS = 10;
/** Of an operation that is repeated as often; of a rarer one fewer. */
const WARM_UP = 50;

export interface Figures {
  readonly median: number;
  readonly p99: number;
  /** Processor time of a request, of the API and of the database's server. */
  readonly servingUs: number;
  readonly databaseUs: number;
}

type Usage = Pick<Figures, 'servingUs' | 'databaseUs'>;

/** A process that has just started is several times as slow. */
export async function warmUp(service: Service, operations: readonly Operation[]): Promise<void> {
  for (let i = 0; i < WARM_UP; i++) {
    for (const { prepare } of operations) await service.call(await prepare(i));
  }
}

/** What `prepare` does counts for the processors, not for the clock. */
export async function time(
  service: Service,
  { prepare, times }: Operation,
  usage: () => Usage,
): Promise<Figures> {
  const warmUp = Math.min(WARM_UP, times);
  const durations: number[] = [];
  let before = usage();
  for (let i = 0; i < times + warmUp; i++) {
    if (i === warmUp) before = usage();
    const call = await prepare(i);
    const began = performance.now();
    await service.call(call);
    if (i >= warmUp) durations.push(performance.now() - began);
  }
  const after = usage();
  return {
    median: median(durations),
    p99: quantile(durations, 0.99),
    servingUs: (after.servingUs - before.servingUs) / times,
    databaseUs: (after.databaseUs - before.databaseUs) / times,
  };
}

export function describe(name: string, { databaseUs, median: p50, p99, servingUs }: Figures): string {
  const cpu = `CPU ${servingUs.toFixed(0)} + ${databaseUs.toFixed(0)} µs`;
  return `  ${name.padEnd(42)} p50 ${p50.toFixed(2)} ms, p99 ${p99.toFixed(2)} ms; ${cpu}`;
}

/** @returns whether all are below the goal; an export is as long as its page */
export function report(
  title: string,
  sizes: readonly number[],
  results: ReadonlyMap<string, readonly Figures[]>,
  say: (line: string) => void,
): boolean {
  if (results.size === 0) return true;
  const head = sizes.map((size) => size.toLocaleString('en').padStart(17)).join('');
  say(`\n${`${title}: median / p99, ms`.padEnd(44)}${head}   growth of the median`);
  let isMet = true;
  for (const [name, figures] of results) {
    const cells = figures.map((one) => `${one.median.toFixed(2)} / ${one.p99.toFixed(2)}`.padStart(17));
    const growth = (figures.at(-1)?.median ?? 0) / (figures[0]?.median ?? 1);
    const isWithin = name.startsWith('export') || figures.every((one) => one.median < GOAL_MS);
    isMet &&= isWithin;
    say(`${name.padEnd(44)}${cells.join('')}   ${growth.toFixed(2)}×${isWithin ? '' : '  over the goal'}`);
  }
  say(`Goal: every median below ${GOAL_MS} ms, exports apart. ${isMet ? 'Reached.' : 'Not reached.'}`);
  return isMet;
}
