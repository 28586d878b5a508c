/**
 * The request of a client and its response, as the steps of a request see them. Our parser and node:http implement it.
 */
import type { Socket } from 'node:net';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Millis } from '#shared/clock.ts';
import type { RequestBody } from './request-body.ts';
import type { SharedReply } from './shared-reply.ts';

export interface ClientRequest {
  method?: string | undefined;
  /** The request target. Each code unit of the string stands for one byte. */
  url?: string | undefined;
  readonly httpVersion: string;
  /** Alternating names and values. */
  readonly rawHeaders: readonly string[];
  readonly headers: {
    readonly 'content-length'?: string | undefined;
    readonly 'transfer-encoding'?: string | undefined;
  };
  readonly socket: Socket;
  /** Whether the whole request has arrived, including its body. */
  readonly complete: boolean;
  /** The body of the request; null if there is none. */
  readonly body: RequestBody | null;
}

/** The access log entry of a reply. */
interface LoggedReply {
  /** Set if the reply does not pass through its response, or is whole although its response does not finish. */
  status: number | null;
}

/** A request and its reply, as the connection sees them. */
export interface Exchange {
  /** The client that holds the exchange's resources; null if it holds none. */
  readonly client: Client | null;
  /** Whether no more of the reply will be written. */
  readonly isClosed: boolean;
  /** The call that forwards the request; null if it is not forwarded. */
  readonly call: UpstreamCall | null;
  /** Stops writing, and releases all resources of the exchange. */
  close(): void;
}

export interface UpstreamCall {
  /** Whether the request body is being forwarded while it arrives. */
  readonly isUploading: boolean;
  /** Called when the client has read the written bytes. */
  onDrain(): void;
  /** Called once a second while the reply is sent. @param unreadMs how long the client has read nothing */
  onTick(unreadMs: Millis): void;
}

/** A response. It behaves as in node:http. */
export interface ClientResponse {
  readonly req: ClientRequest;
  /** The exchange of this response. It is closed when the response ends or the client leaves. */
  exchange: Exchange | null;
  /** The entry of the access log; null if the request is not logged. */
  entry: LoggedReply | null;
  /** The socket of the client; null once the response is written. */
  readonly socket: Socket | null;
  readonly statusCode: number;
  readonly headersSent: boolean;
  readonly destroyed: boolean;
  readonly writableFinished: boolean;
  readonly writableLength: number;
  shouldKeepAlive: boolean;
  writeHead(status: number, headers: string[]): unknown;
  writeHead(status: number, reason: string, headers: string[]): unknown;
  flushHeaders(): void;
  write(chunk: Buffer, written?: (error?: Error | null) => void): boolean;
  end(): unknown;
  end(text: string, encoding: 'latin1'): unknown;
  end(chunk: Buffer): unknown;
  /** Writes all of a reply that many requests share. @param id stands in its gaps @param date value of Date */
  endShared(reply: SharedReply, id: string, date: string): void;
  destroy(): unknown;
  once(event: 'close' | 'finish', listener: () => void): unknown;
}
