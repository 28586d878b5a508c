/** Describes the machine and the versions that the figures are from. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { find, ROOT, version } from './programs.ts';

export interface Machine {
  readonly at: string;
  readonly commit: string;
  readonly text: string;
}

/** @param measured folders that the figures are about; it says whether they have uncommitted changes */
export function describeMachine(measured: readonly string[]): Machine {
  const at = new Date().toISOString();
  const commit = commitOf(measured);
  const load = readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' ');
  const memoryGb = Math.round(totalmem() / 2 ** 30);
  const peers = ['express', 'express-rate-limit', 'http-proxy-middleware', '@fastify/http-proxy'];
  const versions = [
    `Node ${process.version}`,
    ...['undici', 'ioredis', 'rate-limiter-flexible'].map((name) => `${name} ${dependency(name)}`),
    ...[...peers, '@fastify/rate-limit'].map((name) => `${name} ${dependency(name, 'bench/peers/node')}`),
    version('redis-server', '--version'),
    version('nginx', '-v'),
    version('haproxy', '-v').split(' - ')[0],
    `PostgreSQL ${find('psql') === null ? 'not installed' : version('psql', '--version').split(' ').at(2)}`,
  ];
  const text = [
    `${at}, commit ${commit}`,
    `${availableParallelism()} × ${cpus()[0]?.model ?? 'unknown'}, ${memoryGb} GB, Linux ${release()}, load ${load}`,
    versions.join(', '),
  ].join('\n');
  return { at, commit, text };
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
