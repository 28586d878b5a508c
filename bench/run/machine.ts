/** Describes the machine and the versions that the figures are from. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { ROOT, version } from './programs.ts';

const LIBRARIES = ['undici', 'ioredis', 'rate-limiter-flexible'];
const PEER_LIBRARIES = [
  ...['express', 'express-rate-limit', 'http-proxy-middleware', '@fastify/http-proxy', '@fastify/rate-limit'],
];
const PROGRAMS = [
  ...[['redis-server', '--version'] as const, ['nginx', '-v'] as const, ['haproxy', '-v'] as const],
  ...[['caddy', 'version'] as const, ['traefik', 'version'] as const, ['psql', '--version'] as const],
];

/** @param measured folders that the figures are about; it says whether they have uncommitted changes */
export function describeMachine(measured: readonly string[]): string {
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ');
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const versions = [
    `Node ${process.version}`,
    ...LIBRARIES.map((name) => `${name} ${dependency(name)}`),
    ...PEER_LIBRARIES.map((name) => `${name} ${dependency(name, 'bench/peers/node')}`),
    ...PROGRAMS.map(([program, flag]) => `${program} ${version(program, flag)}`),
  ];
  return [
    `commit ${commitOf(measured)}`,
    `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${memoryGb} GB, Linux ${release()}, load ${load}`,
    versions.join(', '),
  ].join('\n');
}

function commitOf(measured: readonly string[]): string {
  const git = (...args: string[]): string =>
    spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
  const hash = git('rev-parse', '--short', 'HEAD') || 'unknown';
  return git('status', '--porcelain', '--', ...measured) === '' ? hash : `${hash} with uncommitted changes`;
}

function dependency(name: string, under = '.'): string {
  try {
    return JSON.parse(readFileSync(join(ROOT, under, 'node_modules', name, 'package.json'), 'utf8')).version;
  } catch {
    return 'not installed';
  }
}
