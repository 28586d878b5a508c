/** Counts replies by kind. Counts wrong replies by kind too, and keeps a few examples of each. */
const EXAMPLES_MAX = 3;

export class Tally {
  readonly kinds = new Map<string, number>();
  readonly wrong = new Map<string, { count: number; readonly examples: string[] }>();

  replied(kind: string): void {
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1);
  }

  fault(kind: string, example: string): void {
    const known = this.wrong.get(kind) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES_MAX) known.examples.push(example);
    this.wrong.set(kind, known);
  }

  get replies(): number {
    return this.kinds.values().reduce((sum, count) => sum + count, 0);
  }

  get wrongReplies(): number {
    return this.wrong.values().reduce((sum, { count }) => sum + count, 0);
  }

  kindsText(): string {
    return [...this.kinds].map(([kind, count]) => `${count} × ${kind}`).join(', ');
  }

  wrongLines(): readonly string[] {
    return [...this.wrong].flatMap(([kind, { count, examples }]) => [
      `  ${count} × ${kind}`,
      ...examples.map((example) => `      ${example}`),
    ]);
  }
}
