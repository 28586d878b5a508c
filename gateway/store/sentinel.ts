/**
 * Connects to the primary that Sentinel names. The sentinels are asked before every attempt to connect, and twice a
 * second while connected. After a failover the old primary may still be reachable, and accept writes that get lost.
 */
import type { Millis } from '#shared/clock.ts';
import { type Endpoint, endpointName, type SentinelAddress } from './address.ts';
import type { ConnectionOptions, StoreConnection, StoreScript } from './connection.ts';
import { StoreFault } from './fault.ts';
import { RedisNode } from './node.ts';
import { Sentinels } from './sentinels.ts';
import type { StoreTls } from './tls.ts';

const LOOK_EVERY_MS: Millis = 500;

export class SentinelConnection implements StoreConnection {
  readonly #sentinels: Sentinels;
  readonly #node: RedisNode;
  #connectedTo: Endpoint | null = null;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(address: SentinelAddress, tls: StoreTls | null, options: ConnectionOptions) {
    const { silenceMs, onChange } = options;
    this.#sentinels = new Sentinels({ address, tls, silenceMs });
    this.#node = new RedisNode({
      locate: async () => {
        this.#connectedTo = await this.#sentinels.primary();
        return this.#connectedTo;
      },
      expects: 'primary',
      database: address.database,
      username: address.username,
      password: address.password,
      tls,
      silenceMs,
      onChange,
    });
  }

  get ready(): boolean {
    return this.#node.ready;
  }

  whyDown(): StoreFault {
    return this.#node.whyDown();
  }

  slotOf(): null {
    return null;
  }

  run(script: StoreScript, keys: readonly string[], args: readonly string[]): Promise<unknown> {
    return this.#node.run(script, keys, args);
  }

  connect(): Promise<void> {
    this.#sentinels.connect();
    this.#node.connect();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
    return this.#node.whenReady();
  }

  close(): void {
    clearInterval(this.#timer);
    this.#node.close();
    this.#sentinels.close();
  }

  #look(): void {
    if (this.#isLooking || !this.#node.ready) return;
    this.#isLooking = true;
    const from = this.#connectedTo;
    this.#sentinels
      .primary()
      .then(
        (named) => {
          if (!this.#node.ready || from === null || this.#connectedTo !== from) return;
          if (endpointName(named) === endpointName(from)) return;
          const message = `the sentinels name ${endpointName(named)} as primary in place of ${endpointName(from)}`;
          this.#node.reconnect(new StoreFault('disconnected', message));
        },
        // If no sentinel answers, keep the current primary.
        () => undefined,
      )
      .finally(() => {
        this.#isLooking = false;
      });
  }
}
