/** Where, when and with what it was measured: figures without this are worth nothing. */
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { availableParallelism, cpus, release, totalmem } from 'node:os';
import { join } from 'node:path';
import { find, ROOT, version } from './tools.ts';

export interface Machine {
  readonly at: string;
  readonly commit: string;
  readonly cpu: string;
  readonly cores: number;
  readonly memoryGb: number;
  readonly kernel: string;
  readonly loadAverage: string;
  readonly driver: string;
  readonly versions: Readonly<Record<string, string>>;
}

/** @param measured what the figures are about: changes in it that are not committed are said */
export function describeMachine(
  at: Date,
  measured: readonly string[] = ['gateway', 'policies.yaml'],
): Machine {
  return {
    at: at.toISOString(),
    commit: commit(measured),
    cpu: cpus()[0]?.model ?? 'unknown',
    cores: availableParallelism(),
    memoryGb: Math.round(totalmem() / 2 ** 30),
    kernel: release(),
    loadAverage: readFileSync('/proc/loadavg', 'utf8').split(' ').slice(0, 3).join(' '),
    driver: find('wrk') === null ? 'autocannon' : 'wrk',
    versions: {
      node: process.version,
      undici: dependency('undici'),
      ioredis: dependency('ioredis'),
      redis: version('redis-server', '--version'),
      nginx: version('nginx', '-v'),
      haproxy: version('haproxy', '-v'),
      express: dependency('express', 'bench/peers'),
      '@fastify/http-proxy': dependency('@fastify/http-proxy', 'bench/peers'),
      '@fastify/rate-limit': dependency('@fastify/rate-limit', 'bench/peers'),
      'express-rate-limit': dependency('express-rate-limit', 'bench/peers'),
      'http-proxy-middleware': dependency('http-proxy-middleware', 'bench/peers'),
      'rate-limiter-flexible': dependency('rate-limiter-flexible'),
    },
  };
}

function commit(measured: readonly string[]): string {
  const git = (...args: string[]): string =>
    spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' }).stdout?.trim() ?? '';
  const hash = git('rev-parse', '--short', 'HEAD') || 'unknown';
  return git('status', '--porcelain', '--', ...measured) === '' ? hash : `${hash} and uncommitted changes`;
}

function dependency(name: string, under = '.'): string {
  try {
    const file = join(ROOT, under, 'node_modules', name, 'package.json');
    return (JSON.parse(readFileSync(file, 'utf8')) as { version: string }).version;
  } catch {
    return 'not installed';
  }
}
