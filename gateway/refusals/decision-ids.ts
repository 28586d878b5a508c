/** Makes the ids of refusals. They look random, so they tell the client nothing. */
import { hash } from 'node:crypto';

/** In hexadecimal digits, which cannot be mistaken for each other on the telephone. */
export const DECISION_ID_LENGTH = 26;

/** Number of ids that one hash makes. It takes some microseconds. A kept id keeps the text of all of them. */
const BATCH = 16;
const HASH = { outputEncoding: 'hex', outputLength: (BATCH * DECISION_ID_LENGTH) / 2 } as const;

const DECISION_ID = new RegExp(`^[0-9a-z]{${DECISION_ID_LENGTH}}$`);

export function isDecisionId(text: string): boolean {
  return DECISION_ID.test(text);
}

export class DecisionIds {
  readonly #process: string;
  #batches = 0;
  #ids = '';
  #next = 0;

  /** @param process a name that no other process has, or has had before */
  constructor(process: string) {
    this.#process = process;
  }

  next(): string {
    if (this.#next === this.#ids.length) {
      this.#ids = hash('shake256', `${this.#process} ${this.#batches++}`, HASH);
      this.#next = 0;
    }
    const from = this.#next;
    this.#next += DECISION_ID_LENGTH;
    return this.#ids.slice(from, this.#next);
  }
}
