import type { AlgorithmName } from '#gateway/algorithms/algorithm.ts';
import type { Calendar } from '#gateway/algorithms/calendar.ts';
import type { Priority } from '#gateway/bounds/priority.ts';
import type { Identifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Lists } from './lists.ts';
import type { Overrides } from './overrides.ts';
import type { NamedPage } from './page-template.ts';
import type { Plans } from './plans.ts';
import type { Path } from './problems.ts';
import type { Rollout } from './rollout.ts';
import type { Route } from './route.ts';

export type Algorithm = AlgorithmName;

/** How many units a request takes of a limit; at least 1. */
export type Cost =
  | { readonly kind: 'units'; readonly units: number }
  /**
   * The cost is in a request header, and at most the capacity. It is 1 if the header is absent or invalid. Name in
   * lower case.
   */
  | { readonly kind: 'header'; readonly header: string }
  /**
   * The cost is in a header of the application's reply. `reserve` is charged until the reply begins. Name in lower
   * case.
   */
  | { readonly kind: 'reply-header'; readonly header: string; readonly reserve: number }
  /** Length of the body. @param unannounced cost if there is no Content-Length; null for the whole capacity */
  | { readonly kind: 'body-bytes'; readonly unannounced: number | null };

export type Count = 'request' | 'failure' | 'success';

/** Whether the reply decides how much of its charge a request keeps. */
export function isSettledByReply({ count, cost }: Pick<Policy, 'count' | 'cost'>): boolean {
  return count !== 'request' || cost.kind === 'reply-header';
}

export type OnStoreFailure = 'allow' | 'deny' | 'local';

/** Bans a client that is denied too often. Times are in milliseconds. */
export interface PolicyBan {
  /** Identifies the row. Denials by all policies of the row count together. */
  readonly bucket: string;
  /** Number of denials that cause a ban. */
  readonly after: number;
  /** Denials count together for this time after the first one. */
  readonly withinMs: Millis;
  readonly forMs: Millis;
  /** Whether each ban is twice as long as the previous one. */
  readonly growing: boolean;
}

export function banText({ after, withinMs, forMs, growing }: PolicyBan): string {
  const longer = growing ? ', twice as long each time' : '';
  return `${after} denials within ${withinMs / 1000} s ban for ${forMs / 1000} s${longer}`;
}

/** A policy allows one identity at most `limit` requests in each window, or at most `limit` requests in flight. */
export interface Policy {
  readonly name: string;
  readonly index: number;
  /** Path of the policy in the file: of a row, or of an entry of its `limits`. */
  readonly at: Path;
  readonly line: number;
  readonly route: Route;
  readonly identifier: Identifier;
  /** Limit for clients without an override. */
  readonly limit: number;
  readonly overrides: Overrides | null;
  readonly algorithm: Algorithm;
  /** Configured burst of a token bucket; null if it is equal to the limit or the override. */
  readonly burst: number | null;
  /** How much clients without an override can use at once: the burst of a token bucket, else the limit. */
  readonly capacity: number;
  readonly cost: Cost;
  readonly count: Count;
  /** 0 for concurrency. For calendar windows, the usual length. */
  readonly windowMs: Millis;
  readonly windowSeconds: Seconds;
  /** The calendar of the windows; null unless the algorithm is calendar-window. */
  readonly calendar: Calendar | null;
  /** Name of the counter: the policy's name, unless several policies share one. */
  readonly bucket: string;
  /**
   * Index of the first policy that uses the counter. That policy represents the counter in headers, metrics and
   * denials, so that a reply does not depend on which policy matched.
   */
  readonly bucketId: number;
  readonly rollout: Rollout | null;
  readonly mode: 'enforce' | 'shadow';
  readonly onStoreFailure: OnStoreFailure;
  readonly headers: boolean;
  readonly ban: PolicyBan | null;
  /** Priority of requests; null if the policy does not set it. */
  readonly priority: Priority | null;
}

/** Whether the application is protected from more concurrent requests than it can handle. */
export type Protect = 'on' | 'shadow';

export interface PolicyTest {
  readonly name: string;
  readonly line: number;
  readonly method: string;
  readonly target: string;
  readonly rawHeaders: readonly string[];
  readonly body: string;
  /** Addresses of the client, used in turn. */
  readonly from: readonly string[];
  readonly times: number;
  readonly reply: number;
  /** Headers of the application's replies, alternating names and values. */
  readonly replyHeaders: readonly string[];
  readonly at: Millis;
  /** Plan that a trusted proxy names; null if none. */
  readonly plan: string | null;
  readonly expect: {
    /** Names of all policies that apply. null, here and below, means that it is not checked. */
    readonly policies: readonly string[] | null;
    readonly allowed: number | null;
    readonly status: number | null;
    readonly priority: Priority | null;
    readonly headers: ReadonlyMap<string, string>;
  };
}

export interface PolicySet {
  readonly file: string;
  /** First characters of a SHA-256 of the file and of the files that it names. */
  readonly version: string;
  readonly policies: readonly Policy[];
  readonly exclude: readonly Route[];
  /** Whether all routes are matched without regard to case, as in the application. */
  readonly ignoreCase: boolean;
  /** Mode of `protect`; null if it is not set. */
  readonly protect: Protect | null;
  /** Lower-case name of the header in which trusted proxies name the plan of a client; null if none. */
  readonly planHeader: string | null;
  readonly plans: Plans | null;
  /** Whether some overrides name programs by their User-Agent. */
  readonly hasProgramLimits: boolean;
  /** Identifiers that do not depend on a route. */
  readonly identifiers: readonly SimpleIdentifier[];
  readonly lists: Lists | null;
  /** Replaces the gateway's page for browsers; null if there is none. */
  readonly page: NamedPage | null;
  readonly tests: readonly PolicyTest[];
}
