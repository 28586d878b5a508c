/** Ports that tests give to servers are not used by others. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';

const COUNT = 120;
/** Linux's default. A machine may begin lower, and then tests may collide by chance. */
const EPHEMERAL_MIN = 32_768;
const TAKE = `
  import { freePort } from '#test/support/ports.ts';
  const ports = [];
  while (ports.length < ${COUNT}) ports.push(await freePort());
  console.log(JSON.stringify(ports));
`;

t.test('two concurrent processes get different ports, which no connection can use', async (t) => {
  const args = ['--input-type=module-typescript', '--eval', TAKE];
  const run = promisify(execFile)(process.execPath, args, { cwd: projectRoot });
  const ports: number[] = [];
  while (ports.length < COUNT) ports.push(await freePort());
  ports.push(...(JSON.parse((await run).stdout) as number[]));
  t.equal(new Set(ports).size, 2 * COUNT);
  t.ok(Math.max(...ports) < EPHEMERAL_MIN, 'the ports are below those of connections');
});
