/** Loads undici when the first connection needs it. Most gateways never do. */
import type { Millis } from '#shared/clock.ts';
import type { ExchangeHandler, UpstreamConnection, UpstreamRequest } from './exchange.ts';
import type { UndiciConnectionOptions } from './undici-connection.ts';

export class LazyConnection implements UpstreamConnection {
  idleSince: Millis = 0;
  #opened: UpstreamConnection | null = null;
  readonly #opening: Promise<UpstreamConnection>;

  constructor(options: UndiciConnectionOptions) {
    this.#opening = import('./undici-connection.ts').then(({ UndiciConnection }) => {
      this.#opened = new UndiciConnection(options);
      return this.#opened;
    });
  }

  get isFresh(): boolean {
    return this.#opened?.isFresh ?? true;
  }

  dispatch(request: UpstreamRequest, handler: ExchangeHandler): void {
    if (this.#opened !== null) this.#opened.dispatch(request, handler);
    else void this.#opening.then((connection) => connection.dispatch(request, handler));
  }

  renew(): void {
    this.#opened?.renew();
  }

  onTick(): void {}

  async close(): Promise<void> {
    await (await this.#opening).close();
  }
}
