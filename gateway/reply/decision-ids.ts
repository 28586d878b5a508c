/** Makes ids of refusals. All have the same length, need no system call, and differ between replicas. */

/** Characters of ids. They are safe in shells and URLs, and letters that look alike are missing. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const PREFIX_LENGTH = 12;
const COUNTER_LENGTH = 8;

export const DECISION_ID_LENGTH = PREFIX_LENGTH + COUNTER_LENGTH;

const DECISION_ID = new RegExp(`^[${ALPHABET}]{${DECISION_ID_LENGTH}}$`);

export function isDecisionId(text: string): boolean {
  return DECISION_ID.test(text);
}

/** The last two characters of an id. */
const ENDINGS: readonly string[] = [...ALPHABET].flatMap((a) => [...ALPHABET].map((b) => a + b));

/**
 * An id consists of a random number of the process (60 bits) and a counter (40 bits), enough for four months with
 * 100,000 denials a second. Ids are not secret, because only the admin listener gives details about a refusal.
 */
export class DecisionIds {
  readonly #prefix: string;
  #counter = 0;
  /** All but the last two characters, which are the same for 1,024 ids. */
  #stem = '';

  /** @param random at least 8 bytes */
  constructor(random: Uint8Array) {
    let bits = 0n;
    for (const byte of random.subarray(0, 8)) bits = (bits << 8n) | BigInt(byte);
    this.#prefix = inAlphabet(bits, PREFIX_LENGTH);
  }

  next(): string {
    const number = this.#counter++;
    const place = number % ENDINGS.length;
    if (place === 0)
      this.#stem = this.#prefix + inAlphabet(BigInt(Math.floor(number / ENDINGS.length)), COUNTER_LENGTH - 2);
    return this.#stem + ENDINGS[place];
  }
}

/** Writes the lowest bits, five in each character. */
function inAlphabet(bits: bigint, length: number): string {
  let text = '';
  for (let rest = bits; text.length < length; rest >>= 5n) text = ALPHABET.charAt(Number(rest & 31n)) + text;
  return text;
}
