/** This file counts what the soak has seen, and reports it. */
import { rounded, type Table } from '#bench/run/report.ts';
import { quantile } from '#bench/run/statistics.ts';
import type { memoryOf } from '#bench/run/usage.ts';

const LATENCIES_MAX = 200_000;
const EXAMPLES_MAX = 3;

type MemoryByPid = ReturnType<typeof memoryOf>;

export class SoakTally {
  readonly #kinds = new Map<string, number>();
  readonly #wrong = new Map<string, { count: number; readonly examples: string[] }>();
  readonly #latenciesMs: number[] = [];
  overAdmitted = 0;
  /** Requests denied below the limit, and admitted above it, because the gateway decided without Redis. */
  deniedAlone = 0;
  admittedAlone = 0;
  /** Replies that arrived after the window of their request had ended. */
  late = 0;

  replied(kind: string, latencyMs?: number): void {
    this.#kinds.set(kind, (this.#kinds.get(kind) ?? 0) + 1);
    if (latencyMs !== undefined && this.#latenciesMs.length < LATENCIES_MAX)
      this.#latenciesMs.push(latencyMs);
  }

  fault(kind: string, example: string): void {
    const known = this.#wrong.get(kind) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES_MAX) known.examples.push(example);
    this.#wrong.set(kind, known);
  }

  get isRight(): boolean {
    return this.#wrong.size === 0;
  }

  toString(): string {
    const replies = this.#kinds.values().reduce((sum, count) => sum + count, 0);
    const wrong = this.#wrong.values().reduce((sum, { count }) => sum + count, 0);
    return `${replies} replies, ${wrong} wrong, ${this.overAdmitted} over-admitted`;
  }

  report(atHalfTime: MemoryByPid, atEnd: MemoryByPid): Table {
    const latencies = [0.5, 0.99, 1].map((q) => `${rounded(quantile(this.#latenciesMs, q), 1)} ms`);
    const memory = [...atEnd].map(([pid, { rssMb, peakMb }]) => {
      const earlier = atHalfTime.get(pid)?.rssMb ?? Number.NaN;
      const [end, half, peak] = [rssMb, earlier, peakMb].map((mb) => `${rounded(mb, 0)} MB`);
      return [`memory of ${pid}`, `${end} at the end, ${half} at half-time, peak ${peak}`];
    });
    return {
      title: String(this),
      head: [],
      rows: [
        ['kinds', [...this.#kinds].map(([kind, count]) => `${count} × ${kind}`).join(', ')],
        [
          'without Redis',
          `${this.deniedAlone} denied before the limit, ${this.admittedAlone} admitted beyond it`,
        ],
        ['late', `${this.late} replies came after the turn of their minute`],
        ['p50, p99, slowest', latencies.join(', ')],
        ...memory,
      ],
      notes: [...this.#wrong].flatMap(([kind, { count, examples }]) => [`${count} × ${kind}`, ...examples]),
    };
  }
}
