/** One line of the access log, and the log as the core uses it. The part `access-log/` implements it. */
import type { Millis } from '#shared/clock.ts';

export const LOGGED_DECISIONS = [
  'allow',
  'deny',
  'banned',
  'uncovered',
  'malformed',
  'unavailable',
  'undecided',
] as const;
export type LoggedDecision = (typeof LOGGED_DECISIONS)[number];

export interface LogLine {
  readonly path: string | null;
  /** Names of the covering policies that counted the request, and of the other ones. */
  readonly policies: readonly string[];
  readonly uncounted: readonly string[];
  readonly identities: Readonly<Record<string, string>>;
  readonly unproven: readonly string[];
  readonly marked: readonly string[];
  readonly [field: string]: unknown;
}

export interface EntryLog {
  /** Whether the next request gets a line. Advances the sample. */
  takes(): boolean;
  write(line: LogLine): void;
}

/** Returns the line for bytes that could not be parsed as a request. */
export function unreadableLine(status: number, time: Millis): LogLine {
  return {
    time: new Date(time).toISOString(),
    method: null,
    path: null,
    status,
    decision: 'malformed',
    id: null,
    policies: [],
    uncounted: [],
    policy: null,
    identities: {},
    address: null,
    unproven: [],
    proves: false,
    plan: null,
    marked: [],
    requestBytes: 0,
    bytes: 0,
    upstreamMs: null,
    storeMs: null,
    durationMs: 0,
    cut: false,
    trace: null,
  };
}
