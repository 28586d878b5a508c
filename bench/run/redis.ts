/** Starts a separate Redis for the bench, which can be frozen or killed. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '#test/support/ports.ts';
import { memoryOnly } from '#test/support/redis-process.ts';
import type { Processes } from './processes.ts';

/** Every write is on the disk before it is acknowledged, so a restart loses nothing. */
export const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];

export interface RedisServer {
  readonly port: number;
  readonly pid: number;
  /** A client of this Redis. Its calls fail while Redis does not answer. */
  readonly client: Redis;
  freeze(ms: number): Promise<void>;
  killAndRestart(downMs: number): Promise<void>;
  stop(): Promise<void>;
}

/** @param args additional arguments of redis-server */
export async function startRedis(processes: Processes, args: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  const folder = join(processes.directory, `redis-${port}`);
  mkdirSync(folder);
  const all = [...memoryOnly(port), '--dir', folder, ...args];
  const launch = () => processes.start('redis-server', 'redis-server', all, { port });
  let server = await launch();
  const client = new Redis(port, '127.0.0.1', {
    ...{ maxRetriesPerRequest: 0, commandTimeout: 500, retryStrategy: () => 100 },
  });
  client.on('error', () => undefined);
  return {
    port,
    client,
    get pid() {
      return server.pid;
    },
    async freeze(ms) {
      process.kill(server.pid, 'SIGSTOP');
      await sleep(ms);
      process.kill(server.pid, 'SIGCONT');
    },
    async killAndRestart(downMs) {
      await server.stop('SIGKILL');
      await sleep(downMs);
      server = await launch();
    },
    async stop() {
      client.disconnect();
      await server.stop();
    },
  };
}
