/** One request, as a line of an access log tells it. */
import type { Millis } from '#shared/clock.ts';

export interface LoggedRequest {
  /** When it arrived, since the epoch; where the log has only the end of the reply, that. */
  readonly at: Millis;
  /** null: what came could not be read as a request. */
  readonly method: string | null;
  /** As in the request line, or canonical. */
  readonly target: string;
  /** 0 where none is known. */
  readonly status: number;
  /** From arrival to the end of the reply; null if the log does not contain it. */
  readonly durationMs: Millis | null;
  /** The sender: either `digests` or `sender` is set. */
  readonly digests: LoggedDigests | null;
  readonly sender: LoggedSender | null;
}

/** The sender in a log of the gateway, and what the gateway knew when it decided. */
export interface LoggedDigests {
  readonly decision: LoggedVerdict;
  /** Names of identifiers and digests in turn, as the policies counted them then. */
  readonly identities: readonly string[];
  /** Digest of the client's address; null if it is not known. */
  readonly address: string | null;
  /** Identifiers whose credential was not known to work. */
  readonly unproven: readonly string[];
  /** The answer showed that the credential works. */
  readonly proves: boolean;
  /** The client's plan, as a trusted proxy said; null: none did, or the log does not tell. */
  readonly plan: string | null;
  /** Names of the policies that covered it, as the log writes them. */
  readonly policies: string;
}

export type LoggedVerdict = 'allow' | 'deny' | 'banned' | 'uncovered' | 'malformed' | 'unavailable';

/** The sender in other logs: an address, and header fields if the log has them. */
export interface LoggedSender {
  /** The other end of the connection. */
  readonly peer: string;
  /** The client according to the logging proxy. */
  readonly client: string;
  /** '' where there is none. */
  readonly forwardedFor: string;
  /** Names and values in turn. */
  readonly headers: readonly string[];
  /** Lower-case names of header fields that were sent and whose value the log conceals. */
  readonly concealed: readonly string[];
  /** Does this log tell such a header field, lower-case, when a request has one? */
  readonly holds: (header: string) => boolean;
}

export const FORMATS = ['floodgate', 'nginx', 'traefik', 'caddy', 'envoy'] as const;
export type FormatName = (typeof FORMATS)[number];

/** Reads the lines of one file. */
export interface LineReader {
  readonly format: FormatName;
  /** A look at the time alone, where that is cheap. @returns `LoggedRequest.at`, or NaN: the line has to be read */
  time(text: string, start: number, end: number): Millis;
  /**
   * @param at what `time` said
   * @returns what stands between the two places of the text; null when that is no such line
   */
  read(text: string, start: number, end: number, at?: Millis): LoggedRequest | null;
}

/** For formats whose lines have to be parsed to find the time. */
export const NO_CHEAP_TIME = (): Millis => Number.NaN;
