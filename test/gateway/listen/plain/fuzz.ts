/** Compares both parsers for the seeds after FROM. Exits with 1 at the first differences. */
import { compare } from './differential.ts';
import { Readers } from './readers.ts';

/** Number of seeds in one step, which prints one line. */
const STEP = 100_000;

const [from = 1, count = 10_000_000] = process.argv.slice(2).map(Number);
let plain = 0;
for (let seed = from; seed < from + count; seed += STEP) {
  const readers = new Readers();
  const totals = await compare(readers, seed, Math.min(STEP, from + count - seed));
  plain += totals.plain;
  console.log(`seeds up to ${seed + totals.cases - 1}: ${plain} plain, ${totals.differences.length} differ`);
  for (const difference of totals.differences) console.log(JSON.stringify(difference, null, 2));
  if (totals.differences.length > 0) process.exit(1);
}
