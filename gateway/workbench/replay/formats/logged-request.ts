/** One request from a line of an access log. */
import type { LoggedDecision } from '#gateway/observe/log-line.ts';
import type { Millis } from '#shared/clock.ts';

export interface LoggedRequest {
  /** Arrival in milliseconds since the epoch; the end of the reply if the log has only that. */
  readonly at: Millis;
  /** Method of the request; null if its bytes could not be read as a request. */
  readonly method: string | null;
  /** The target as in the request line, or canonical. */
  readonly target: string;
  /** Status of the reply; 0 if unknown. */
  readonly status: number;
  /**
   * Bytes of the reply that were sent, in the gateway's own log with its header section; null if the log does not contain
   * them.
   */
  readonly bytes: number | null;
  /** The sender. Either `digests` or `sender` is set. */
  readonly digests: LoggedDigests | null;
  readonly sender: LoggedSender | null;
}

/** The sender in a log of the gateway, and what the gateway knew when it decided. */
export interface LoggedDigests {
  readonly decision: LoggedDecision;
  /** Digests by the names of identifiers, as the policies counted them at that time. */
  readonly identities: ReadonlyMap<string, string>;
  /** Digest of the client's address; null if unknown. */
  readonly address: string | null;
  /** Identifiers whose credential was unproven. */
  readonly unproven: readonly string[];
  /** Whether the reply proved the credential. */
  readonly proves: boolean;
  /** The client's plan, from a trusted proxy; null if it sent none, or the log does not have it. */
  readonly plan: string | null;
  /** Names of the policies that covered it. */
  readonly policies: readonly string[];
}

/** The sender in other logs: an address, and header fields if the log has them. */
export interface LoggedSender {
  /** Address of the peer of the connection. */
  readonly peer: string;
  /** Address of the client according to the proxy that wrote the log. */
  readonly client: string;
  /** Value of X-Forwarded-For; empty if there is none. */
  readonly forwardedFor: string;
  /** Alternating names and values. */
  readonly headers: readonly string[];
  /** Whether the log shows if the request has a header field (in lower case). A redacted value shows nothing. */
  readonly holds: (header: string) => boolean;
}
