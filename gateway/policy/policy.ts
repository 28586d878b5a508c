import type { AlgorithmName } from '#gateway/algorithms/algorithm.ts';
import type { Calendar } from '#gateway/algorithms/calendar.ts';
import type { Identifier } from '#gateway/identity/identifier.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Overrides } from './overrides.ts';

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

/** The clients that a policy counts so far. */
export interface Rollout {
  /** Percentage of all clients, 0 to 100. If it grows, clients are only added. */
  readonly percent: number;
  /** Derived from the bucket name, so that each bucket starts with other clients. */
  readonly seed: number;
}

/** A policy allows one identity at most `limit` requests in each window, or at most `limit` requests in flight. */
export interface Policy {
  readonly name: string;
  readonly index: number;
  readonly line: number;
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
}
