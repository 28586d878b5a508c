/**
 * Connection with undici, for `https:` upstreams and for protocol switches. An undici client has at most one socket,
 * and opens a new one if that closes.
 */
import { isIP } from 'node:net';
import type { Duplex } from 'node:stream';
import { buildConnector, Client, type Dispatcher, errors } from 'undici';
import type { Millis } from '#shared/clock.ts';
import {
  type Exchange,
  type ExchangeHandler,
  REPLY_HEAD_BYTES_MAX,
  ReplyHeadTooLargeError,
  type UpstreamConnection,
  type UpstreamRequest,
  UpstreamTimeoutError,
} from './exchange.ts';

export interface UndiciConnectionOptions {
  readonly origin: string;
  /** Name in the certificate. undici would use the Host header, which the client chooses. */
  readonly servername: string;
  /** Path of a Unix socket; null if the connection goes to the origin's host. */
  readonly socketPath: string | null;
  readonly connectTimeoutMs: Millis;
  readonly bodyTimeoutMs: Millis;
  readonly keepAliveMs: Millis;
  readonly keepAliveMsMax: Millis;
  readonly keepAliveMarginMs: Millis;
  readonly onClose: () => void;
}

export class UndiciConnection implements UpstreamConnection {
  idleSince: Millis = 0;
  isFresh = false;
  readonly #options: UndiciConnectionOptions;
  #client: Client;
  /** Whether the last reply may be followed by a body that it must not have. */
  #isSuspect = false;

  constructor(options: UndiciConnectionOptions) {
    this.#options = options;
    this.#client = this.#openClient();
  }

  dispatch(request: UpstreamRequest, handler: ExchangeHandler): void {
    if (this.#isSuspect) this.renew();
    this.isFresh = false;
    const { method, target, headers, body, upgrade } = request;
    const options: Dispatcher.DispatchOptions & { servername: string } = {
      path: target,
      method: method as Dispatcher.HttpMethod,
      headers: headers as string[],
      body: body as NonNullable<Dispatcher.DispatchOptions['body']> | null,
      // After HEAD, because some applications send a body all the same. After a refused upgrade, because the plain
      // connection that sends these takes each of their sockets for a new one.
      reset: upgrade !== null || method === 'HEAD',
      servername: this.#options.servername,
    };
    if (upgrade !== null) options.upgrade = upgrade;
    this.#client.dispatch(options, new Adapter(handler, this));
  }

  /** Called for a reply that must not have a body and announces one. undici does not let its handler close the socket. */
  suspect(): void {
    this.#isSuspect = true;
  }

  renew(): void {
    this.#isSuspect = false;
    void this.#client.destroy();
    this.#client = this.#openClient();
  }

  /** undici has its own timers. */
  onTick(): void {}

  close(): Promise<void> {
    this.#options.onClose();
    return this.#client.destroy();
  }

  #openClient(): Client {
    const { origin, servername, socketPath, connectTimeoutMs, bodyTimeoutMs } = this.#options;
    const connect = buildConnector({ timeout: connectTimeoutMs, allowH2: false, socketPath });
    return new Client(origin, {
      pipelining: 1,
      allowH2: false,
      maxHeaderSize: REPLY_HEAD_BYTES_MAX,
      connect: (target, callback) => {
        // TLS server names must not be IP addresses (RFC 6066 3).
        const { servername: _, ...address } = target;
        connect(
          isIP(servername) === 0 ? target : address,
          (...result: Parameters<buildConnector.Callback>) => {
            this.isFresh = true;
            callback(...result);
          },
        );
      },
      // Switch this timeout off, because the call has its own deadline.
      headersTimeout: 0,
      bodyTimeout: bodyTimeoutMs,
      keepAliveTimeout: this.#options.keepAliveMs,
      keepAliveMaxTimeout: this.#options.keepAliveMsMax,
      keepAliveTimeoutThreshold: this.#options.keepAliveMarginMs,
    });
  }
}

const UNWANTED = new Error('the reply is no longer needed');

/** Translates undici's callbacks into those of an exchange. */
class Adapter implements Dispatcher.DispatchHandler {
  readonly #handler: ExchangeHandler;
  readonly #connection: UndiciConnection;
  #controller: Dispatcher.DispatchController | null = null;
  #exchange: Exchange | null = null;

  constructor(handler: ExchangeHandler, connection: UndiciConnection) {
    this.#handler = handler;
    this.#connection = connection;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    const exchange: Exchange = {
      pause: () => controller.pause(),
      resume: () => controller.resume(),
      abort: (error) => controller.abort(error),
    };
    // Throwing makes undici drop the request and keep the connection. Aborting would close it.
    if (!this.#handler.onBegin(exchange)) throw UNWANTED;
    this.#exchange = exchange;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    reason = '',
  ): void {
    const headers = this.#headers();
    if ((status === 204 || status === 304) && announcesBody(headers)) this.#connection.suspect();
    if (status >= 200 && this.#exchange !== null)
      this.#handler.onHead(this.#exchange, status, reason, headers);
  }

  onResponseData(_controller: Dispatcher.DispatchController, piece: Buffer): void {
    if (this.#exchange !== null) this.#handler.onData(this.#exchange, piece);
  }

  onResponseEnd(): void {
    this.#handler.onEnd();
  }

  onRequestUpgrade(
    _controller: Dispatcher.DispatchController,
    status: number,
    _headers: unknown,
    socket: Duplex,
  ): void {
    this.#handler.onUpgrade(status, this.#headers(), socket);
  }

  onResponseError(_controller: Dispatcher.DispatchController | null, error: Error): void {
    // Without a controller no connection could be opened. undici is about to fail the requests of this client, and
    // would crash the process if another one were added.
    if (this.#controller === null) this.#connection.renew();
    this.#handler.onError(translated(error), []);
  }

  #headers(): string[] {
    return ((this.#controller?.rawHeaders ?? []) as Buffer[]).map((text) => text.toString('latin1'));
  }
}

function announcesBody(headers: readonly string[]): boolean {
  return headers.some((name, i) => i % 2 === 0 && /^(?:content-length|transfer-encoding)$/i.test(name));
}

function translated(error: Error): Error {
  if (error instanceof errors.HeadersOverflowError) return new ReplyHeadTooLargeError({ cause: error });
  if (error instanceof errors.BodyTimeoutError || error instanceof errors.ConnectTimeoutError)
    return new UpstreamTimeoutError(error.message, { cause: error });
  return error;
}
