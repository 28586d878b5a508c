/** Counts the replies of the soak: all, wrong ones with a few examples of each kind, admissions beyond a limit, latencies. */
const EXAMPLES_MAX = 3;
const LATENCIES_MAX = 200_000;

export class Tally {
  replies = 0;
  admitted = 0;
  denied = 0;
  overAdmitted = 0;
  /** Denied before the limit was reached, and admitted beyond it, both explained by decisions without Redis. */
  deniedAlone = 0;
  admittedAlone = 0;
  /** Replies after the window of their request. */
  late = 0;
  readonly wrong = new Map<string, { count: number; readonly examples: string[] }>();
  readonly kinds = new Map<string, number>();
  readonly latenciesMs: number[] = [];

  replied(kind: string, latencyMs: number | null): void {
    this.replies++;
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1);
    if (latencyMs !== null && this.latenciesMs.length < LATENCIES_MAX) this.latenciesMs.push(latencyMs);
  }

  fault(kind: string, example: string): void {
    const known = this.wrong.get(kind) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES_MAX) known.examples.push(example);
    this.wrong.set(kind, known);
  }

  get wrongReplies(): number {
    return this.wrong.values().reduce((sum, { count }) => sum + count, 0);
  }
}
