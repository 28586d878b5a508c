/** A terminal that somebody watches until they press q or Ctrl-C. */
import type { ReadStream } from 'node:tty';

const CTRL_C = '\u0003';

export class Screen {
  readonly #stdin: ReadStream;
  readonly #ended: Promise<true>;
  #onData: (data: Buffer) => void = () => undefined;

  constructor(stdin: ReadStream) {
    this.#stdin = stdin;
    this.#ended = new Promise((resolve) => {
      this.#onData = (data) => {
        // In raw mode Ctrl-C is a character.
        const text = data.toString();
        if (text.includes('q') || text.includes('Q') || text.includes(CTRL_C)) resolve(true);
      };
    });
    if (!stdin.isTTY) return;
    stdin.setRawMode(true);
    stdin.on('data', this.#onData);
  }

  /** @returns whether they want it to end */
  async endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const waited = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const ends = await Promise.race([this.#ended, waited]);
    clearTimeout(timer);
    return ends;
  }

  close(): void {
    if (!this.#stdin.isTTY) return;
    this.#stdin.off('data', this.#onData);
    this.#stdin.setRawMode(false);
    this.#stdin.pause();
  }
}
