/** A Redis for one target, and what it was asked to do. */
import { Redis } from 'ioredis';
import type { Processes, Started } from '../processes.ts';
import { path } from '../tools.ts';

export interface Store {
  readonly pid: number;
  readonly port: number;
  /** Commands so far, those inside scripts included; 0 once it is down. */
  commands(): Promise<number>;
  stop(): Promise<void>;
}

export async function startRedis(processes: Processes, port: number): Promise<Store> {
  const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no'];
  const server: Started = await processes.start('redis-server', path('redis-server'), args, {
    port,
    cwd: processes.directory,
  });
  const client = new Redis(port, '127.0.0.1', { retryStrategy: null, maxRetriesPerRequest: 0 });
  let down = false;
  // It goes down on purpose in one scenario; what else goes wrong shows in the answers.
  client.on('error', () => {
    down = true;
  });
  return {
    pid: server.pid,
    port,
    async commands() {
      if (down || client.status !== 'ready') return 0;
      const found = /total_commands_processed:(\d+)/.exec(await client.info('stats'));
      return Number(found?.[1] ?? 0);
    },
    async stop() {
      down = true;
      client.disconnect();
      await server.stop();
    },
  };
}
