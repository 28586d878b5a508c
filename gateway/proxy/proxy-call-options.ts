import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { UpgradeSocket } from './upgrade.ts';
import type { Upstream } from './upstream.ts';

export type ProxyFailure =
  | { readonly kind: 'broken-body' }
  | { readonly kind: 'timeout' }
  | { readonly kind: 'unavailable'; readonly reason: string }
  /** The adaptive limit refused the request. */
  | { readonly kind: 'overloaded'; readonly priority: Priority }
  | { readonly kind: 'bound'; readonly bound: BoundName; readonly refusal: Refusal };

export interface ProxyCallOwner {
  /** @param headers alternating names and values */
  onReplyBegun(status: number, headers: readonly string[]): void;
  /** Called for a reply that the client does not get. @param headers those that could be read */
  onUnreadReply(headers: readonly string[]): void;
  /**
   * Called when a tunnel has closed, or the upstream has finished a request whose client has left. Both outlive the
   * call.
   */
  onUpstreamDone(): void;
  /** Called when the call is closed before any part of a reply was written. */
  onFailed(failure: ProxyFailure): void;
}

export interface ProxyCallOptions {
  readonly owner: ProxyCallOwner;
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly upstream: Upstream;
  readonly clients: Clients;
  /** Entered for this call. The call leaves it when all resources are given back. */
  readonly client: Client;
  readonly priority: Priority;
  readonly head: CheckedHead;
  readonly headers: string[];
  readonly target: string;
  readonly cors: boolean;
  readonly added: readonly string[];
  readonly expectsContinue: boolean;
  /** The client's socket if the client asks to switch protocols; otherwise null. */
  readonly upgrade: UpgradeSocket | null;
  /** Whether to wait for the upstream's reply after the client has left. */
  readonly outlivesClient: boolean;
}
