/** The ways in: the public port, and proxies that ask. Each is an object that the story of a request has. */
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { SentBody } from '#gateway/identity/body-field.ts';
import type { Reservation } from '#gateway/limiter/outcome.ts';
import type { AccessEntry } from '#gateway/observe/access-entry.ts';
import type { Refusal } from '#gateway/refusals/refusal.ts';
import type { Framing } from '#gateway/reply/own-reply.ts';
import type { RequestFacts } from './events.ts';
import type { Sent } from './reading/read.ts';

/** How a request came, and how it is answered. */
export interface Way {
  readonly req: Sent;
  readonly connection: { readonly origin: RequestOrigin };
  /** Entry of the access log; null if the request is not logged. */
  readonly entry: AccessEntry | null;
  /** Whether the connection ends with a reply of the gateway. */
  readonly closes: boolean;
  /** Whether browsers get a page instead of JSON. */
  readonly takesPages: boolean;
  /** Whether the sender has checked the request's credentials, so that they count as proven. */
  readonly isVouchedFor: boolean;
  /** Whether another proxy asks about the request, and forwards it itself. */
  readonly isAsked: boolean;
  /** Reads the body of a request whose policies count a field of it. Never calls back if the client leaves. */
  receiveBody(then: (body: SentBody) => void): void;
  /** Answers a probe of `floodgate doctor`. */
  answerProbe(seen: string): void;
  /**
   * Lets an admitted request pass.
   *
   * @param added the gateway's headers for the reply, alternating names and values
   * @param reservation null if the charge does not depend on the reply, and no policy counts requests in flight
   */
  pass(added: readonly string[], reservation: Reservation | null): void;
  refuse(refusal: Refusal, framing: Framing): void;
}

/** A request that can be refused. */
export interface Refusable extends RequestFacts {
  readonly way: Way;
  /** Marks the request as answered. @returns false if it was answered before, or its client has left */
  finish(): boolean;
}
