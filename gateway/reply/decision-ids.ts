/** Names for decisions: of one length, made without a system call, never the same on two replicas. */

/** No vowels but a and e, no characters that look alike, nothing that a shell or an option parser reads otherwise. */
const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz';
const PREFIX_LENGTH = 12;
const COUNTER_LENGTH = 8;

/** Of every id. */
export const DECISION_ID_LENGTH = PREFIX_LENGTH + COUNTER_LENGTH;

const DECISION_ID = new RegExp(`^[${ALPHABET}]{${DECISION_ID_LENGTH}}$`);

export function isDecisionId(text: string): boolean {
  return DECISION_ID.test(text);
}

/** The last two characters of an id. */
const ENDINGS: readonly string[] = [...ALPHABET].flatMap((a) => [...ALPHABET].map((b) => a + b));

/**
 * A random part of this process, 60 bits, and a counter behind it, 40 bits: enough for four months of 100,000 denials a
 * second. An id is no secret: whoever wants to know what stands behind it has to ask the admin listener.
 */
export class DecisionIds {
  readonly #prefix: string;
  #counter = 0;
  /** All but the last two characters; good for 1,024 ids. */
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

/** The lowest bits, five a character. */
function inAlphabet(bits: bigint, length: number): string {
  let text = '';
  for (let rest = bits; text.length < length; rest >>= 5n) text = ALPHABET.charAt(Number(rest & 31n)) + text;
  return text;
}
