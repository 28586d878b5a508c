/** A response of node:http with a reference to its exchange, so that all responses share their listeners. */
import type { OutgoingHttpHeader, OutgoingHttpHeaders, ServerResponse } from 'node:http';
import type { ClientResponse, Exchange } from './client-exchange.ts';
import type { IncomingRequest } from './incoming-request.ts';
import * as http from './node-http.ts';
import { hasBody } from './request-head.ts';
import type { SharedReply } from './shared-reply.ts';

function onClose(this: ServerResponse): void {
  (this as OutgoingResponse).exchange?.close();
}

function onDrain(this: ServerResponse): void {
  (this as OutgoingResponse).exchange?.call?.onDrain();
}

export class OutgoingResponse<R extends IncomingRequest = IncomingRequest>
  extends http.ServerResponse<R>
  implements ClientResponse
{
  entry: ClientResponse['entry'] = null;
  #exchange: Exchange | null = null;

  get exchange(): Exchange | null {
    return this.#exchange;
  }

  set exchange(exchange: Exchange) {
    this.#exchange = exchange;
    this.on('close', onClose).on('drain', onDrain);
  }

  get #offersUpgradeWithBody(): boolean {
    const { upgrade, 'content-length': length = '0', 'transfer-encoding': coding } = this.req.headers;
    return upgrade !== undefined && hasBody(Number(length), coding !== undefined);
  }

  override writeHead(
    status: number,
    reason?: string | OutgoingHttpHeaders | OutgoingHttpHeader[],
    headers?: OutgoingHttpHeaders | OutgoingHttpHeader[],
  ): this {
    // node:http drops what it reads together with the end of a request that offers another protocol. After an early
    // reply, the rest of the body and the next request may arrive together.
    if (!this.req.complete && this.#offersUpgradeWithBody) this.shouldKeepAlive = false;
    return typeof reason === 'string'
      ? super.writeHead(status, reason, headers)
      : super.writeHead(status, reason);
  }

  endShared(reply: SharedReply, id: string, date: string): void {
    this.writeHead(reply.status, [...reply.headersWith(id), 'Date', date]);
    this.end(reply.bodyWith(id), 'latin1');
  }
}
