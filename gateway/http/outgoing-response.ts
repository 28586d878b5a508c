/** A response of node:http with a reference to its exchange, so that all responses share their listeners. */
import type { ServerResponse } from 'node:http';
import type { ClientResponse, Exchange } from './client-exchange.ts';
import type { IncomingRequest } from './incoming-request.ts';
import * as http from './node-http.ts';
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

  endShared(reply: SharedReply, id: string, date: string): void {
    this.writeHead(reply.status, [...reply.headersWith(id), 'Date', date]);
    this.end(reply.bodyWith(id), 'latin1');
  }
}
