/** One connection to the upstream: an undici client that has at most one socket, and opens another when that is gone. */
import type { buildConnector, Client, Dispatcher } from 'undici';
import type { Millis } from '#shared/clock.ts';
import { UpstreamSocket } from './upstream-socket.ts';

/** @param connect what the client opens its socket with */
export type OpenClient = (wrap: (connect: buildConnector.connector) => buildConnector.connector) => Client;

export class UpstreamConnection {
  /** When it was given back. */
  idleSince: Millis = 0;
  readonly #open: OpenClient;
  readonly #onClose: () => void;
  #client: Client;
  #socket: UpstreamSocket | null = null;
  #isFresh = false;

  constructor(open: OpenClient, onClose: () => void) {
    this.#open = open;
    this.#onClose = onClose;
    this.#client = this.#openClient();
  }

  /** The last request had a socket opened for it, or would have had one. */
  get isFresh(): boolean {
    return this.#isFresh;
  }

  /** Errors, undici's objections to the request included, come to the handler. */
  dispatch(request: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void {
    this.#socket?.expectReply();
    this.#isFresh = false;
    this.#client.dispatch(request, handler);
  }

  /** Gives up the socket: the next request opens another one. */
  renew(): void {
    void this.#client.destroy();
    this.#client = this.#openClient();
  }

  /** The socket has become a tunnel: it is no longer ours. */
  handOver(): void {
    this.#socket = null;
  }

  close(): Promise<void> {
    this.#onClose();
    return this.#client.destroy();
  }

  #openClient(): Client {
    this.#socket = null;
    return this.#open((connect) => (target, callback) => {
      connect(target, (...result: Parameters<buildConnector.Callback>) => {
        const [, socket] = result;
        this.#isFresh = true;
        this.#socket = socket instanceof UpstreamSocket ? socket : null;
        callback(...result);
      });
    });
  }
}
