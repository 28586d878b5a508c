/**
 * The only source of chance for tests. `npm test` always takes the same seed, so that it gives the same result twice.
 * `npm run test:all` takes a new one and prints it. TEST_SEED repeats a run.
 */
export const SEED = Number(process.env.TEST_SEED ?? 1);
if (!Number.isSafeInteger(SEED))
  throw new Error(`TEST_SEED: "${process.env.TEST_SEED}" is not a whole number`);

/** Whether the seed is always the same. */
const isFixed = process.env.TEST_SEED === undefined;

/** Returns the number of rounds of a random test: with the fixed seed a quarter, because each run repeats the same ones. */
export function rounds(count: number): number {
  return isFixed ? Math.ceil(count / 4) : count;
}

/** Returns all items; with the fixed seed every second one of the list, beginning at another place each time. */
export function some<T>(items: readonly T[], turn: number): readonly T[] {
  return isFixed ? items.filter((_, i) => (i + turn) % 2 === 0) : items;
}

/** Returns numbers from 0 to 1. Each stream has its own numbers, which are the same in every run with this seed (mulberry32). */
export function seededRandom(stream: number): () => number {
  let state = (Math.imul(SEED, 0x9e3779b1) + stream) | 0;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}

/** Returns a whole number from 0 to below `n`. */
export type Dice = (n: number) => number;

export function dice(stream: number): Dice {
  const random = seededRandom(stream);
  return (n) => Math.floor(random() * n);
}

export function seededBytes(stream: number, length: number): Buffer {
  const roll = dice(stream);
  return Buffer.from(Array.from({ length }, () => roll(256)));
}
