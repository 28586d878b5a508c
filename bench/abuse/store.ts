/** Floodgate's Redis in the abuse bench: counted, and put into trouble when a scenario says so. */
import { mkdirSync } from 'node:fs';
import { connect, createServer, type Server, type Socket } from 'node:net';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { freePort } from '#test/support/ports.ts';
import type { Processes, Started } from '../processes.ts';
import { path } from '../tools.ts';
import type { StoreTrouble } from './scenario.ts';

const FROZEN_MS = 2000;
const GARBLED_MS = 2000;
/** One reply in so many is garbled. */
const GARBLED_EVERY = 50;

export interface AbuseStore {
  /** Where the gateway is to find it. */
  readonly port: number;
  /** null while it does not answer. */
  keys(): Promise<number | null>;
  /** Brings the trouble, and ends it again. */
  trouble(): Promise<void>;
  stop(): Promise<void>;
}

export async function startStore(processes: Processes, trouble: StoreTrouble | null): Promise<AbuseStore> {
  const port = await freePort();
  const folder = join(processes.directory, `redis-${port}`);
  mkdirSync(folder);
  const isKept = trouble === 'restarted';
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--dir', folder];
  args.push('--appendonly', isKept ? 'yes' : 'no', '--appendfsync', 'always');
  if (trouble === 'small') args.push('--maxmemory', '12mb', '--maxmemory-policy', 'noeviction');
  const start = (): Promise<Started> => processes.start('redis-server', path('redis-server'), args, { port });
  let server = await start();
  const client = new Redis(port, '127.0.0.1', {
    maxRetriesPerRequest: 0,
    enableOfflineQueue: false,
    commandTimeout: 200,
    retryStrategy: () => 100,
  });
  // It goes down on purpose; keys() says null then.
  client.on('error', () => undefined);
  const garbler = trouble === 'garbled' ? await startGarbler(port) : null;
  return {
    port: garbler?.port ?? port,
    keys: () => client.dbsize().catch(() => null),
    async trouble() {
      if (trouble === 'frozen') {
        process.kill(server.pid, 'SIGSTOP');
        await sleep(FROZEN_MS);
        process.kill(server.pid, 'SIGCONT');
      } else if (trouble === 'restarted') {
        await server.stop('SIGKILL');
        await sleep(500);
        server = await start();
      } else if (garbler !== null) {
        garbler.garble(true);
        await sleep(GARBLED_MS);
        garbler.garble(false);
      }
    },
    async stop() {
      client.disconnect();
      garbler?.close();
      await server.stop();
    },
  };
}

interface Garbler {
  readonly port: number;
  garble(isOn: boolean): void;
  close(): void;
}

/** Passes everything on; while it garbles, one decision in so many comes out as nonsense of the same length. */
async function startGarbler(redisPort: number): Promise<Garbler> {
  const port = await freePort();
  const open = new Set<Socket>();
  let decisions = 0;
  let garbles = false;
  const server: Server = createServer((client) => {
    const redis = connect(redisPort, '127.0.0.1');
    for (const socket of [client, redis]) {
      open.add(socket);
      socket.on('error', () => socket.destroy());
      socket.once('close', () => {
        open.delete(socket);
        client.destroy();
        redis.destroy();
      });
    }
    client.pipe(redis);
    redis.on('data', (chunk: Buffer) => {
      // The text of a decision begins with a bracket, behind its length.
      const at = chunk.indexOf('\r\n[');
      if (garbles && at > 0 && ++decisions % GARBLED_EVERY === 0) chunk.fill('{', at + 2, at + 3);
      client.write(chunk);
    });
  });
  await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
  return {
    port,
    garble(isOn) {
      garbles = isOn;
    },
    close() {
      server.close();
      for (const socket of open) socket.destroy();
    },
  };
}
