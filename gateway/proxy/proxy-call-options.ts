/** What a proxy call is given, and what it tells. */

import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { ClientResponse } from '#gateway/http/client-connection.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { UpgradeSocket } from './upgrade.ts';
import type { Upstream } from './upstream.ts';

export type ProxyFailure =
  /** The request's body ended before its time. */
  | { readonly kind: 'broken-body' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unavailable'; readonly reason: string }
  | { readonly kind: 'bound'; readonly bound: BoundName; readonly refusal: Refusal };

export interface ProxyCallOwner {
  /** The upstream's reply has begun. */
  onReplyBegun(status: number): void;
  /** The upstream is done with what outlived the call: a tunnel, or a request whose client has left. */
  onUpstreamDone(): void;
  /** Nothing has been written of a reply, and nothing will be. The call is closed. */
  onFailed(failure: ProxyFailure): void;
}

export interface ProxyCallOptions {
  readonly owner: ProxyCallOwner;
  readonly req: IncomingRequest;
  readonly res: ClientResponse;
  readonly upstream: Upstream;
  readonly clients: Clients;
  /** Entered for this call, which leaves when all is given back. */
  readonly client: Client;
  readonly head: CheckedHead;
  /** What the upstream gets to see of the header section, names and values in turn. */
  readonly headers: string[];
  /** What is asked of the upstream: canonical path and query. */
  readonly target: string;
  readonly cors: boolean;
  /** The gateway's headers on the reply, names and values in turn. */
  readonly added: readonly string[];
  /** The client waits for 100 Continue before it sends the body. */
  readonly expectsContinue: boolean;
  /** Set when the client wants to switch protocols. */
  readonly upgrade: UpgradeSocket | null;
  /** When the client leaves, the upstream may go on until it has answered. */
  readonly outlivesClient: boolean;
}
