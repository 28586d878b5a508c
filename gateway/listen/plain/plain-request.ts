/** A plain request. */
import type { Socket } from 'node:net';
import type { ClientRequest } from '#gateway/http/client-exchange.ts';
import type { RequestBody } from '#gateway/http/request-body.ts';
import type { PlainHead } from './plain-head.ts';

export class PlainRequest implements ClientRequest {
  readonly method: string;
  readonly url: string;
  readonly httpVersion = '1.1';
  readonly rawHeaders: readonly string[];
  readonly socket: Socket;
  readonly body: RequestBody | null;
  readonly #contentLength: number;

  constructor(
    { method, target, rawHeaders, contentLength }: PlainHead,
    socket: Socket,
    body: RequestBody | null,
  ) {
    this.method = method;
    this.url = target;
    this.rawHeaders = rawHeaders;
    this.socket = socket;
    this.body = body;
    this.#contentLength = contentLength;
  }

  get complete(): boolean {
    return this.body === null || this.body.complete;
  }

  get headers(): ClientRequest['headers'] {
    return { 'content-length': String(this.#contentLength) };
  }
}
