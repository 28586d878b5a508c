/** A connection of a client, and the exchange of request and reply on it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Millis } from '#shared/clock.ts';
import type { IncomingRequest } from './incoming-request.ts';
import * as http from './node-http.ts';
import type { RequestOrigin } from './request-origin.ts';

/** The line in the access log of a reply that does not pass through its response. */
interface LoggedReply {
  status: number | null;
}

/** A request and its reply, as their connection sees them. */
export interface Exchange {
  /** The client that holds the exchange's resources; null: it holds none. */
  readonly client: Client | null;
  /** No more of the reply will be written. */
  readonly isClosed: boolean;
  /** The body is forwarded while it comes in. */
  readonly isUploading: boolean;
  /** Writes nothing more, and gives back what it holds. */
  close(): void;
  /** The client has read what was written. */
  onDrain(): void;
  /** Called once a second while the reply goes out. @param unreadMs how long the client has read nothing */
  onTick(unreadMs: Millis): void;
}

/** A response that knows its exchange, so that all responses share their listeners. */
export class ClientResponse<R extends IncomingMessage = IncomingRequest> extends http.ServerResponse<R> {
  exchange: Exchange | null = null;
  /** null: the access log gets no line. */
  entry: LoggedReply | null = null;
}

function onClose(this: ServerResponse): void {
  (this as ClientResponse).exchange?.close();
}

/** Closes the exchange when the response or its client is gone. */
export function assignExchange(response: ClientResponse, exchange: Exchange): void {
  response.exchange = exchange;
  response.on('close', onClose);
}

function onDrain(this: ServerResponse): void {
  (this as ClientResponse).exchange?.onDrain();
}

export function watchDrain(response: ClientResponse): void {
  response.on('drain', onDrain);
}

export class ClientConnection {
  readonly socket: Socket;
  readonly origin: RequestOrigin;
  /** null behind a trusted proxy, where each request names its own client. */
  readonly client: Client | null;
  /** How many pipelined requests wait for their turn. */
  pipelined = 0;
  #response: ClientResponse | null = null;

  constructor(socket: Socket, origin: RequestOrigin, client: Client | null) {
    this.socket = socket;
    this.origin = origin;
    this.client = client;
  }

  /** A request's turn has come. */
  begin(response: ClientResponse): void {
    this.#response = response;
  }

  /** The response that is due or being written. node:http takes the socket from it at its end. */
  get pending(): ClientResponse | null {
    return this.#response?.socket == null ? null : this.#response;
  }
}
