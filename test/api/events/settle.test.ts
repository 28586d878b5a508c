import t from 'tap';
import { retryDelay } from '#api/events/settle.ts';

const lowest = (bytes: number): Uint8Array => new Uint8Array(bytes);
const highest = (bytes: number): Uint8Array => new Uint8Array(bytes).fill(255);

t.test('doubles the pauses from 5 s, and makes each up to a fifth longer, never shorter', async (t) => {
  const shortest = [1, 2, 3, 4, 5, 6, 7].map((count) => retryDelay(count, lowest));
  t.same(shortest, [5_000, 10_000, 20_000, 40_000, 80_000, 160_000, 320_000]);
  const longest = [1, 2, 3].map((count) => retryDelay(count, highest));
  t.same(longest, [6_000, 12_000, 24_000]);
});

t.test('the longest pause is an hour', async (t) => {
  for (const count of [11, 20, 1_000, 1e9]) t.equal(retryDelay(count, lowest), 3_600_000);
});
