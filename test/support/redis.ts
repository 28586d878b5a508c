/** Starts a real redis-server for a test, on a free port and without persistence. It ends with the test. */
import { Redis } from 'ioredis';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { endRedis, launchRedis, memoryOnly } from './redis-process.ts';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  readonly pid: number;
  /** A plain client for the test's own questions; closed with the server. */
  readonly client: Redis;
  /** Sends SIGSTOP: the port still accepts, and nothing answers. */
  freeze(): void;
  /** Sends SIGCONT. */
  thaw(): void;
  /** Sends SIGKILL and waits until it has ended. */
  kill(): Promise<void>;
  /** Starts it again on the same port, empty. */
  restart(): Promise<void>;
}

/**
 * @param args further arguments of redis-server, for instance ['--maxmemory', '1mb']
 * @param password that these arguments set
 */
export async function startRedis(
  owner: Owner,
  args: readonly string[] = [],
  password?: string,
): Promise<RedisServer> {
  const port = await freePort();
  let child = await launchRedis([...memoryOnly(port), ...args]);
  const client = new Redis(port, '127.0.0.1', {
    password,
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
  });
  client.on('error', () => {
    // The tests kill this server on purpose; the client reconnects by itself.
  });
  owner.teardown(async () => {
    client.disconnect();
    await endRedis(child);
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    client,
    get pid() {
      return child.pid ?? 0;
    },
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill: () => endRedis(child),
    async restart() {
      await endRedis(child);
      child = await launchRedis([...memoryOnly(port), ...args]);
    },
  };
}
