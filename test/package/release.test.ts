/** `npm run release -- --help` says how to call it, and makes nothing. */
import { execFileSync } from 'node:child_process';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

t.test('--help', async (t) => {
  const text = execFileSync(process.execPath, ['package/release/main.ts', '--help'], { cwd: projectRoot });
  t.match(text.toString(), /^npm run release -- \[--out FOLDER\] \[--node FILE\]\n\nMakes everything/);
});
