/** Text of any characters, for property-based tests. */
import { fc } from './fast-check.ts';

const LAST = 0x10ffff;
const isHalf = (point: number): boolean => point >= 0xd800 && point <= 0xdfff;

const point = fc.oneof(
  fc.integer({ min: 0, max: 0x7f }),
  fc.integer({ min: 0, max: LAST }).filter((one) => !isHalf(one)),
);
/** Names that every object inherits. */
const inherited = fc.constantFrom('__proto__', 'constructor', 'toString', 'hasOwnProperty', 'valueOf');

/**
 * Generates well-formed text, often ASCII, also with control characters. fast-check's own `unit: 'binary'` first makes a
 * table of a million possible characters, which takes longer than most tests.
 */
export function anyText(constraints: fc.ArrayConstraints = {}): fc.Arbitrary<string> {
  const points = fc.array(point, constraints).map((all) => String.fromCodePoint(...all));
  return fc.oneof({ weight: 9, arbitrary: points }, { weight: 1, arbitrary: inherited });
}
