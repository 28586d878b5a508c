/** Describes the machine and the versions of all programs, to print them with the results. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, loadavg, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT, version } from './programs.ts';

const LIBRARIES = ['ioredis', 'rate-limiter-flexible', '@fastify/http-proxy'];
const PROGRAMS = [
  ...[['redis-server', '--version'] as const, ['nginx', '-v'] as const],
  ...[['caddy', 'version'] as const],
];

export function describeMachine(): string {
  const load = loadavg().map((value) => value.toFixed(2));
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const commit = spawnSync('git', ['describe', '--always', '--dirty'], {
    cwd: ROOT,
    encoding: 'utf8',
  }).stdout;
  const versions = [
    `Node ${process.version}`,
    ...LIBRARIES.map((name) => `${name} ${dependency(name)}`),
    ...PROGRAMS.map(([program, flag]) => `${program} ${version(program, flag)}`),
  ];
  return [
    `commit ${commit?.trim() || 'unknown'}`,
    `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${memoryGb} GB, Linux ${release()}, load ${load.join(' ')}`,
    versions.join(', '),
  ].join('\n');
}

function dependency(name: string): string {
  return JSON.parse(readFileSync(join(ROOT, 'node_modules', name, 'package.json'), 'utf8')).version;
}
