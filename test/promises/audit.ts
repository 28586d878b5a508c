/**
 * `npm run audit`: runs the short form of each promise of docs/promises.md, and prints the result. `npm run audit -- WORD`
 * runs those whose text contains the word. Exits with 1 if a promise does not hold.
 */
import { spawnSync } from 'node:child_process';
import { projectRoot } from '#test/support/process.ts';
import { PROMISES } from './rows.ts';

const word = process.argv.slice(2).join(' ').toLowerCase();
const chosen = PROMISES.filter(({ promise }) => promise.toLowerCase().includes(word));
if (chosen.length === 0) {
  console.error(`No promise contains "${word}". Run npm run audit without a word.`);
  process.exit(1);
}

let broken = 0;
for (const { promise, tests, notCovered } of chosen) {
  const begun = performance.now();
  const run = spawnSync(process.execPath, ['test/runner/main.ts', ...tests], {
    cwd: projectRoot,
    encoding: 'utf8',
    maxBuffer: 2 ** 28,
  });
  const seconds = `${Math.round((performance.now() - begun) / 1000)} s`;
  const holds = run.status === 0;
  if (!holds) broken++;
  console.log(`${holds ? 'holds ' : 'BROKEN'} ${seconds.padStart(6)}  ${promise}`);
  console.log(`               not covered: ${notCovered}`);
  if (holds) continue;
  const failed = run.stdout.split('\n').filter((line) => /^\s*not ok/.test(line));
  console.log(`               run npm test -- ${tests.join(' ')}`);
  for (const line of [...failed.slice(0, 5), ...run.stderr.split('\n').slice(-6, -1)])
    console.log(`               ${line.trim()}`);
}
console.log(`${chosen.length - broken} of ${chosen.length} promises hold.`);
process.exitCode = broken === 0 ? 0 : 1;
