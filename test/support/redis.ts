/** A real redis-server of the test's own, on a free port, without persistence. */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { Redis } from 'ioredis';
import { freePort } from './ports.ts';

export interface RedisServer {
  readonly url: string;
  readonly port: number;
  /** A plain client for the test's own questions; closed with the server. */
  readonly client: Redis;
  /** SIGSTOP: the port accepts, nothing answers. */
  freeze(): void;
  /** SIGCONT */
  thaw(): void;
  /** SIGKILL, and wait until it is gone. */
  kill(): Promise<void>;
  /** Start again on the same port, empty. */
  restart(): Promise<void>;
  close(): Promise<void>;
}

async function launch(port: number, args: readonly string[]): Promise<ChildProcess> {
  const child = spawn(
    'redis-server',
    ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', ...args],
    { stdio: ['ignore', 'pipe', 'inherit'] },
  );
  await new Promise<void>((resolve, reject) => {
    let log = '';
    child.once('error', reject);
    child.once('exit', (code) => reject(new Error(`redis-server ended with ${code}: ${log}`)));
    child.stdout?.on('data', (chunk: Buffer) => {
      log += chunk.toString();
      if (log.includes('Ready to accept connections')) resolve();
    });
  });
  return child;
}

async function end(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const gone = once(child, 'exit');
  child.kill('SIGKILL');
  await gone;
}

/** @param args further arguments of redis-server, for instance ['--maxmemory', '1mb'] */
export async function startRedis(args: readonly string[] = []): Promise<RedisServer> {
  const port = await freePort();
  let child = await launch(port, args);
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => {
    // The tests kill this server on purpose; the client reconnects by itself.
  });
  return {
    url: `redis://127.0.0.1:${port}`,
    port,
    client,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill: () => end(child),
    async restart() {
      await end(child);
      child = await launch(port, args);
    },
    async close() {
      client.disconnect();
      await end(child);
    },
  };
}
