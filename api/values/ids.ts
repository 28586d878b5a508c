/** Identifiers and tokens. The random source is an argument. */

/** Returns unpredictable bytes of the given number. Only `main.ts` and `test/support` use a real source. */
export type Random = (bytes: number) => Uint8Array;

const ALPHABET = '0123456789abcdefghijklmnopqrstuvwxyz';
/** The largest multiple of 36 in a byte. Larger bytes are skipped, so that every character is equally likely. */
const UNBIASED = 252;
const ID_LENGTH = 25;

/** The pattern of the ids of our own rows. */
export const ID_PATTERN = '^[0-9a-z]{1,64}$';
const idPattern = new RegExp(ID_PATTERN);

/** Whether this text can be the id of a row. Otherwise it needs no query. */
export function isId(text: string): boolean {
  return idPattern.test(text);
}

/** Creates an id: 25 lower-case alphanumerics starting with `c`, with 124 random bits. */
export function newId(random: Random): string {
  let id = 'c';
  while (id.length < ID_LENGTH) {
    for (const byte of random(ID_LENGTH)) {
      if (byte < UNBIASED && id.length < ID_LENGTH) id += ALPHABET[byte % ALPHABET.length];
    }
  }
  return id;
}

export function newUuid(random: Random): string {
  const bytes = Buffer.from(random(16));
  bytes.writeUInt8((bytes.readUInt8(6) & 0x0f) | 0x40, 6);
  bytes.writeUInt8((bytes.readUInt8(8) & 0x3f) | 0x80, 8);
  const hex = bytes.toString('hex');
  return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join('-');
}
