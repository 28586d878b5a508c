/** A client's connection, and what is going on on it. */
import type { IncomingMessage, ServerResponse } from 'node:http';
import type { Socket } from 'node:net';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Millis } from '#shared/clock.ts';
import type { IncomingRequest } from './incoming-request.ts';
import * as http from './node-http.ts';
import type { RequestOrigin } from './request-origin.ts';

/** What the access log says of a reply that does not pass through its response. */
interface LoggedReply {
  status: number | null;
}

/** A request and what becomes of it, as its connection sees it. */
export interface Exchange {
  /** Who is charged with what the exchange holds; null while nobody is. */
  readonly client: Client | null;
  /** Its reply has been handed over as a whole, or no more of it will be. */
  readonly isClosed: boolean;
  /** Its body goes to the upstream while it comes in. */
  readonly isUploading: boolean;
  /** Writes nothing more, and gives back what it holds. */
  close(): void;
  /** The client has read what was written. */
  onDrain(): void;
  /** Once a second while the reply goes out. @param unreadMs for how long the client has read nothing of it */
  onTick(unreadMs: Millis): void;
}

/** A response that knows its exchange, so that one shared listener serves all instead of a closure per request. */
export class ClientResponse<R extends IncomingMessage = IncomingRequest> extends http.ServerResponse<R> {
  exchange: Exchange | null = null;
  /** Its line in the access log; null: it gets none. */
  entry: LoggedReply | null = null;
}

function onClose(this: ServerResponse): void {
  (this as ClientResponse).exchange?.close();
}

/** @param response its exchange is told when the client is gone */
export function assignExchange(response: ClientResponse, exchange: Exchange): void {
  response.exchange = exchange;
  response.on('close', onClose);
}

function onDrain(this: ServerResponse): void {
  (this as ClientResponse).exchange?.onDrain();
}

/** The exchange is told as well when the client has read what was written. */
export function watchDrain(response: ClientResponse): void {
  response.on('drain', onDrain);
}

export class ClientConnection {
  readonly socket: Socket;
  readonly origin: RequestOrigin;
  /** Whose connection it is; null behind a trusted proxy, where each request names its own client. */
  readonly client: Client | null;
  /** Pipelined requests that wait for the replies before theirs. */
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

  /** The response that is due, or on its way. node:http takes the socket from it when it is out. */
  get pending(): ClientResponse | null {
    return this.#response?.socket == null ? null : this.#response;
  }
}
