/** What the soak counts: answers, wrong ones with a few examples of each kind, admissions beyond a limit, latencies. */
const EXAMPLES_MAX = 3;
const LATENCIES_MAX = 200_000;

export class Tally {
  answers = 0;
  admitted = 0;
  denied = 0;
  overAdmitted = 0;
  /** Denied before the limit was reached, and admitted beyond it, as counting alone explains. */
  deniedAlone = 0;
  admittedAlone = 0;
  /** Answers that came after the window in which they were asked for. */
  late = 0;
  readonly wrong = new Map<string, { count: number; readonly examples: string[] }>();
  readonly done = new Map<string, number>();
  readonly latenciesMs: number[] = [];

  answered(kind: string, latencyMs: number | null): void {
    this.answers++;
    this.done.set(kind, (this.done.get(kind) ?? 0) + 1);
    if (latencyMs !== null && this.latenciesMs.length < LATENCIES_MAX) this.latenciesMs.push(latencyMs);
  }

  /** @param example who, when and what */
  fault(kind: string, example: string): void {
    const known = this.wrong.get(kind) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES_MAX) known.examples.push(example);
    this.wrong.set(kind, known);
  }

  get wrongAnswers(): number {
    return this.wrong.values().reduce((sum, { count }) => sum + count, 0);
  }
}
