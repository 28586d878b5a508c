/** A Redis of the bench's own: counts its commands and keys, and can be disturbed. */
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '#test/support/ports.ts';
import type { Processes, Started } from './processes.ts';
import { path } from './programs.ts';

interface RedisOptions {
  /** Every write is on the disk before it is acknowledged, so a restart loses nothing. */
  readonly isDurable?: boolean;
  /** Such as `12mb`. Redis then refuses writes instead of removing keys. */
  readonly maxMemory?: string;
}

export async function startRedis(processes: Processes, options: RedisOptions = {}): Promise<RedisServer> {
  const redis = new RedisServer(processes, await freePort(), options);
  await redis.start();
  return redis;
}

export class RedisServer {
  readonly port: number;
  readonly #processes: Processes;
  readonly #args: readonly string[];
  readonly #client: Redis;
  #server: Started | null = null;

  constructor(processes: Processes, port: number, { isDurable = false, maxMemory }: RedisOptions) {
    this.port = port;
    this.#processes = processes;
    const folder = join(processes.directory, `redis-${port}`);
    mkdirSync(folder);
    const memory =
      maxMemory === undefined ? [] : ['--maxmemory', maxMemory, '--maxmemory-policy', 'noeviction'];
    this.#args = [
      ...['--port', String(port), '--bind', '127.0.0.1', '--dir', folder, '--save', ''],
      ...['--appendonly', isDurable ? 'yes' : 'no', '--appendfsync', 'always', ...memory],
    ];
    this.#client = new Redis(port, '127.0.0.1', {
      ...{ lazyConnect: true, maxRetriesPerRequest: 0, commandTimeout: 500, retryStrategy: () => 100 },
    });
    // Some scenarios end Redis. Its figures are null then.
    this.#client.on('error', () => undefined);
  }

  get pid(): number {
    if (this.#server === null) throw new Error('Redis was not started');
    return this.#server.pid;
  }

  /** Includes the commands inside scripts. 0 while Redis does not answer. */
  async commands(): Promise<number> {
    const stats = await this.#client.info('stats').catch(() => '');
    return Number(/total_commands_processed:(\d+)/.exec(stats)?.[1] ?? 0);
  }

  /** null while Redis does not answer. */
  keys(): Promise<number | null> {
    return this.#client.dbsize().catch(() => null);
  }

  async freeze(ms: number): Promise<void> {
    process.kill(this.pid, 'SIGSTOP');
    await sleep(ms);
    process.kill(this.pid, 'SIGCONT');
  }

  async killAndRestart(downMs: number): Promise<void> {
    await this.#server?.stop('SIGKILL');
    await sleep(downMs);
    await this.start();
  }

  /** Ends all connections of clients. */
  async cutConnections(): Promise<void> {
    await this.#client.call('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
  }

  async start(): Promise<void> {
    const { port } = this;
    this.#server = await this.#processes.start('redis-server', path('redis-server'), this.#args, { port });
  }

  async stop(): Promise<void> {
    this.#client.disconnect();
    await this.#server?.stop();
  }
}
