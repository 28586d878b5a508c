/**
 * What happens to the store and the policy file meanwhile, in turn minute by minute: a Redis that stands still, one that
 * is killed and comes back with all it knew, connections cut, the policies edited. Every fourth minute only edits them.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Processes, Started } from '../processes.ts';
import { policiesOf } from '../targets/gateway.ts';
import { path, ROOT } from '../tools.ts';

const FIRST_MS = 12_000;
const FROZEN_MS = 3000;
const DOWN_MS = 2000;
const BETWEEN_CUTS_MS = 8000;

/** Forgets nothing: every write is on disk before it is answered. */
export class SoakStore {
  readonly port: number;
  readonly #processes: Processes;
  readonly #folder: string;
  #server: Started | null = null;

  constructor(processes: Processes, port: number) {
    this.port = port;
    this.#processes = processes;
    this.#folder = join(processes.directory, `soak-redis-${port}`);
    mkdirSync(this.#folder);
  }

  async start(): Promise<void> {
    const args = ['--port', String(this.port), '--bind', '127.0.0.1', '--save', '', '--dir', this.#folder];
    args.push('--appendonly', 'yes', '--appendfsync', 'always');
    this.#server = await this.#processes.start('redis-server', path('redis-server'), args, {
      port: this.port,
    });
  }

  async freeze(): Promise<void> {
    const { pid } = this.#running();
    process.kill(pid, 'SIGSTOP');
    await sleep(FROZEN_MS);
    process.kill(pid, 'SIGCONT');
  }

  async killAndRestart(): Promise<void> {
    await this.#running().stop('SIGKILL');
    await sleep(DOWN_MS);
    await this.start();
  }

  async cutConnections(): Promise<void> {
    const client = new Redis(this.port, '127.0.0.1', { maxRetriesPerRequest: 0 });
    client.on('error', () => undefined);
    await client.call('CLIENT', 'KILL', 'TYPE', 'normal');
    client.disconnect();
  }

  async stop(): Promise<void> {
    await this.#server?.stop();
  }

  #running(): Started {
    if (this.#server === null) throw new Error('the store was not started');
    return this.#server;
  }
}

/** The shipped policies, and one more that never applies, another each time: an edit that must not touch any counter. */
export function writePolicies(file: string, edition: number): void {
  const text = policiesOf(ROOT, ({ policies }) => {
    policies.push({
      name: `soak-${edition}`,
      route: `GET /never/${edition}`,
      identifier: 'ip',
      limit: 1,
      window: '1m',
    });
  });
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

export class Troubles {
  readonly #store: SoakStore;
  readonly #policyFile: string;
  #turn = 0;
  #edition = 0;

  constructor(store: SoakStore, policyFile: string) {
    this.#store = store;
    this.#policyFile = policyFile;
  }

  /** What this minute brings. */
  async minute(): Promise<string> {
    const turn = this.#turn++ % 4;
    await sleep(FIRST_MS);
    switch (turn) {
      case 0:
        await this.#store.freeze();
        return 'Redis stood still for 3 s';
      case 1:
        await this.#store.killAndRestart();
        return 'Redis was killed and started again';
      case 2:
        await this.#store.cutConnections();
        await sleep(BETWEEN_CUTS_MS);
        this.#edit();
        await this.#store.cutConnections();
        return 'connections to Redis were cut twice, the policies edited';
      default:
        this.#edit();
        return 'the policies were edited';
    }
  }

  #edit(): void {
    writePolicies(this.#policyFile, ++this.#edition);
  }
}
