/** A connection of a client. */
import type { Socket } from 'node:net';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Millis } from '#shared/clock.ts';
import type { ClientResponse } from './client-exchange.ts';
import type { RequestOrigin } from './request-origin.ts';

interface PlainReader {
  /** Ends the connection if it is idle. Called several times during a drain. */
  closeIdle(): void;
  /** Ends it if it took too long. Called once a second. */
  check(now: Millis): void;
}

export class ClientConnection {
  readonly socket: Socket;
  readonly origin: RequestOrigin;
  /** The client of the connection; null behind a trusted proxy, where each request names its own client. */
  readonly client: Client | null;
  /** What waits for earlier replies: the number of pipelined requests, and their bytes in units. */
  pipelined = 0;
  /** Reads the connection until it is handed over to node:http; then null. */
  reader: PlainReader | null = null;
  #response: ClientResponse | null = null;

  constructor(socket: Socket, origin: RequestOrigin, client: Client | null) {
    this.socket = socket;
    this.origin = origin;
    this.client = client;
  }

  /** Whether the last request was answered before its body had arrived, so the next bytes belong to it. */
  get isBodyDue(): boolean {
    const response = this.#response;
    return response !== null && response.socket == null && !response.req.complete;
  }

  /** Called when a request becomes the first one in the queue. */
  begin(response: ClientResponse): void {
    this.#response = response;
  }

  /** The response that is due or being written. null after its end, when the socket is detached from it. */
  get pending(): ClientResponse | null {
    // The response refers to the bodies of its request and reply. All connections are asked once a second, so an idle
    // one soon keeps nothing of them.
    if (this.isBodyDue) return null;
    if (this.#response?.socket == null) this.#response = null;
    return this.#response;
  }
}
