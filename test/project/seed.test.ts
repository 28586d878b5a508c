/** The random numbers of all tests depend on one seed, so a run can be repeated. */
import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { dice, seededBytes } from '#test/support/seed.ts';

/** test/support also makes keys, and names that no other process uses. */
const files = globSync('test/**/*.ts', {
  cwd: projectRoot,
  exclude: ['**/node_modules/**', 'test/support/**', 'test/runner/main.ts', 'test/project/seed.test.ts'],
});
/** An option of this name gets its numbers from its caller. */
const UNSEEDED = /Math\.random|\brandom(?:Bytes|Int|UUID|Fill\w*)\b(?!:)|getRandomValues|from 'fast-check'/;

t.test('no test has another source of chance', async (t) => {
  t.ok(files.length > 300);
  const wrong = files.filter((file) => UNSEEDED.test(readFileSync(join(projectRoot, file), 'utf8')));
  t.strictSame(wrong, [], 'import test/support/seed.ts or test/support/fast-check.ts instead');
});

t.test('a stream gives the same numbers again, and another stream gives others', async (t) => {
  const rolls = (stream: number): number[] => {
    const roll = dice(stream);
    return Array.from({ length: 1000 }, () => roll(10));
  };
  t.strictSame(rolls(1), rolls(1));
  t.notSame(rolls(1), rolls(2));
  t.strictSame([...new Set(rolls(1))].sort(), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
  t.equal(new Set(seededBytes(1, 10_000)).size, 256);
});
