/** Describes the machine and the versions of all programs, to print them with the results. */
import { spawnSync } from 'node:child_process';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { PATH, ROOT } from './programs.ts';

export function describeMachine(): string {
  const load = loadavg().map((value) => value.toFixed(2));
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const versions = [
    ['redis-server', '--version'] as const,
    ['nginx', '-v'] as const,
    ['caddy', 'version'] as const,
  ].map(
    ([program, flag]) =>
      `${program} ${/\d+(?:\.\d+)+/.exec(outputOf(program, flag))?.[0] ?? 'not installed'}`,
  );
  return [
    `commit ${outputOf('git', 'describe', '--always', '--dirty').trim() || 'unknown'}`,
    `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${memoryGb} GB, Linux ${release()}, load ${load.join(' ')}`,
    `Node ${process.version}, ${versions.join(', ')}`,
  ].join('\n');
}

function outputOf(program: string, ...args: readonly string[]): string {
  const { stdout, stderr } = spawnSync(program, args, {
    cwd: ROOT,
    encoding: 'utf8',
    env: { ...process.env, PATH },
  });
  return `${stdout}${stderr}`;
}
