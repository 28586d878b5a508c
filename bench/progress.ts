/** A progress bar on stderr; where that is no terminal, one line per step in ten. */
const WIDTH = 30;

export class Progress {
  readonly #total: number;
  readonly #began = Date.now();
  #done = 0;
  #told = -1;

  constructor(total: number) {
    this.#total = total;
  }

  step(label: string): void {
    this.#done = Math.min(this.#total, this.#done + 1);
    this.#show(label);
  }

  say(line: string): void {
    this.#clear();
    process.stderr.write(`${line}\n`);
  }

  end(): void {
    this.#clear();
  }

  #show(label: string): void {
    const share = this.#done / this.#total;
    const leftSeconds = Math.round(((Date.now() - this.#began) / 1000) * (1 / Math.max(share, 0.001) - 1));
    const left = `${Math.floor(leftSeconds / 60)}:${String(leftSeconds % 60).padStart(2, '0')} left`;
    if (process.stderr.isTTY) {
      const bar = '█'.repeat(Math.round(share * WIDTH)).padEnd(WIDTH, '░');
      process.stderr.write(
        `\r\x1b[K${bar} ${String(Math.floor(share * 100)).padStart(3)} %  ${left}  ${label}`,
      );
      return;
    }
    const tenth = Math.floor(share * 10);
    if (tenth === this.#told) return;
    this.#told = tenth;
    process.stderr.write(`${String(Math.floor(share * 100)).padStart(3)} %  ${left}  ${label}\n`);
  }

  #clear(): void {
    if (process.stderr.isTTY) process.stderr.write('\r\x1b[K');
  }
}
