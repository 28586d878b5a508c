/**
 * Connects to the primary that Sentinel names. The sentinels are asked before every attempt to connect, and twice a
 * second while connected. After a failover the old primary may still be reachable, and accept writes that get lost.
 */
import type { Millis } from '#shared/clock.ts';
import { endpointName, type SentinelAddress } from './address.ts';
import type { ConnectionOptions } from './connection.ts';
import { StoreFault } from './fault.ts';
import { PrimaryConnection } from './primary.ts';
import { Sentinels } from './sentinels.ts';
import type { StoreTls } from './tls.ts';

const LOOK_EVERY_MS: Millis = 500;

export class SentinelConnection extends PrimaryConnection {
  readonly #sentinels: Sentinels;
  #timer: NodeJS.Timeout | undefined;
  #isLooking = false;

  constructor(address: SentinelAddress, tls: StoreTls | null, options: ConnectionOptions) {
    const sentinels = new Sentinels({ address, tls, silenceMs: options.silenceMs });
    super(address, tls, options, () => sentinels.primary());
    this.#sentinels = sentinels;
  }

  override connect(): Promise<void> {
    this.#sentinels.connect();
    this.#timer = setInterval(() => this.#look(), LOOK_EVERY_MS);
    this.#timer.unref();
    return super.connect();
  }

  override close(): void {
    clearInterval(this.#timer);
    super.close();
    this.#sentinels.close();
  }

  #look(): void {
    if (this.#isLooking || !this.node.ready) return;
    this.#isLooking = true;
    const from = this.node.endpoint;
    this.#sentinels
      .primary()
      .then(
        (named) => {
          if (!this.node.ready || from === null || this.node.endpoint !== from) return;
          if (endpointName(named) === endpointName(from)) return;
          const message = `the sentinels name ${endpointName(named)} as primary in place of ${endpointName(from)}`;
          this.node.reconnect(new StoreFault('disconnected', message));
        },
        // If no sentinel answers, keep the current primary.
        () => undefined,
      )
      .finally(() => {
        this.#isLooking = false;
      });
  }
}
