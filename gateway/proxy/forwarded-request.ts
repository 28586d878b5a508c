/** The request that a call forwards. */
import type { BoundName } from '#gateway/bounds/bound-names.ts';
import type { Refusal } from '#gateway/bounds/bounds.ts';
import type { Client } from '#gateway/bounds/clients.ts';
import type { Lane, Priority } from '#gateway/bounds/priority.ts';
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { Match } from '#gateway/policy/match.ts';
import type { UpgradeSocket } from './upgrade.ts';
import type { UpstreamFault } from './upstream-reason.ts';

export type ProxyFailure =
  | { readonly kind: 'timeout'; readonly fault: UpstreamFault }
  /** `fault` is null if the upstream is not to blame. */
  | { readonly kind: 'unavailable'; readonly reason: string; readonly fault: UpstreamFault | null }
  /** The adaptive limit refused the request. */
  | { readonly kind: 'overloaded'; readonly priority: Priority }
  | { readonly kind: 'bound'; readonly bound: BoundName; readonly refusal: Refusal };

/** Further wishes of the client. */
export interface RequestOptions {
  /** The response, if the client waits for 100 Continue before it sends the body; otherwise null. */
  readonly continuation: { writeContinue(): void } | null;
  /** The client's socket, if the client wants to switch protocols; otherwise null. */
  readonly upgrade: UpgradeSocket | null;
}

export interface ForwardedRequest {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
  readonly head: CheckedHead;
  readonly match: Pick<Match, 'target'>;
  /** Its order among the requests that wait for the application. */
  readonly lane: Lane;
  /** Whether pages of other origins may read the limit headers of the reply. */
  readonly exposesLimits: boolean;
  readonly options: RequestOptions;
  /** @param headers alternating names and values */
  onReplyBegun(status: number, headers: readonly string[]): void;
  /** Called for a reply that the client does not get. @param headers null if they could not be read */
  onUnreadReply(headers: readonly string[] | null): void;
  /**
   * Called when a tunnel has closed, or the upstream has finished a request whose client has left. Both outlive the
   * call.
   *
   * @param sentBytes bytes that the client was sent through the tunnel
   */
  onUpstreamDone(sentBytes: number): void;
  /** Called when the call is closed before any part of a reply was written. */
  onFailed(failure: ProxyFailure): void;
}

/** The gateway adds this to a request when it forwards it. */
export interface Passage {
  /** Entered for this call. The call leaves it when all resources are given back. */
  readonly client: Client;
  /** The header section for the upstream, as alternating names and values. */
  readonly headers: string[];
  /** The gateway's headers for the reply, as alternating names and values. */
  readonly added: readonly string[];
  /** Whether to wait for the upstream's reply after the client has left. */
  readonly outlivesClient: boolean;
}
