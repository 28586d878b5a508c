import type { AlgorithmName } from '#gateway/algorithms/algorithm.ts';
import type { Calendar } from '#gateway/algorithms/calendar.ts';
import type { DigestWords } from '#gateway/identity/digest.ts';
import { type Identifier, readsBody, type SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Overrides } from './clients.ts';
import type { Group } from './groups.ts';

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
  /**
   * Bytes of the reply's body that were sent to the client. `reserve` is charged until the reply ends; null for a
   * hundredth of the capacity.
   */
  | { readonly kind: 'reply-bytes'; readonly reserve: number | null }
  /** Length of the body. @param unannounced cost if there is no Content-Length; null for the whole capacity */
  | { readonly kind: 'body-bytes'; readonly unannounced: number | null };

export type Count = 'request' | 'failure' | 'success';

/** Returns what decides how much of its charge a request keeps: the begin of its reply, the end of it, or neither. */
export function settledAt({ count, cost }: Pick<Policy, 'count' | 'cost'>): 'begin' | 'end' | null {
  if (cost.kind === 'reply-bytes') return 'end';
  return count !== 'request' || cost.kind === 'reply-header' ? 'begin' : null;
}

/** Whether the reply decides how much of its charge a request keeps. */
export function isSettledByReply(policy: Pick<Policy, 'count' | 'cost'>): boolean {
  return settledAt(policy) !== null;
}

/** Whether a limit is a number of bytes of bodies. */
export function countsBytes({ cost }: Pick<Policy, 'cost'>): boolean {
  return cost.kind === 'body-bytes' || cost.kind === 'reply-bytes';
}

/** Whether a policy depends on the body of a request. */
export function countsBody({ identifier, distinct }: Pick<Policy, 'identifier' | 'distinct'>): boolean {
  return readsBody(identifier) || (distinct !== null && readsBody(distinct));
}

/** Only `enforce` denies. `shadow` counts and reports, and `mark` also tells the application. */
export type Mode = 'enforce' | 'shadow' | 'mark';

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

/** The clients that a policy counts so far. */
export interface Rollout {
  /** Percentage of all clients, 0 to 100. If it grows, clients are only added. */
  readonly percent: number;
  /** Derived from the bucket name, so that each bucket starts with other clients. */
  readonly seed: number;
}

/** Selects the clients that a policy counts during a rollout. The choice is the same for every request and gateway. */
export function rolloutOf(percent: number, bucket: string): Rollout {
  let seed = 0x811c9dc5;
  for (let i = 0; i < bucket.length; i++) seed = Math.imul(seed ^ bucket.charCodeAt(i), 0x01000193);
  return { percent, seed };
}

export function isRolledOut({ percent, seed }: Rollout, words: DigestWords): boolean {
  let mixed = Math.imul(words[0] ^ seed, 0x9e3779b1);
  mixed = Math.imul(mixed ^ (mixed >>> 15) ^ words[1], 0x85ebca6b);
  return ((mixed ^ (mixed >>> 13)) >>> 0) / 2 ** 32 < percent / 100;
}

/** A policy allows one identity at most `limit` requests in each window, or at most `limit` requests in flight. */
export interface Policy {
  readonly name: string;
  readonly index: number;
  readonly line: number;
  readonly identifier: Identifier;
  /** The policy counts no request that presents a proven credential of this identifier. null if it counts all. */
  readonly unless: Identifier | null;
  /** The limit is a number of different values of this identifier. null if it is a number of requests. */
  readonly distinct: SimpleIdentifier | null;
  /** The policy counts only clients of this group. null if it counts all. */
  readonly onlyFor: Group | null;
  /** The bucket of the limit for a group of which this is the share of one client or network. null if it is none. */
  readonly shareOf: string | null;
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
  readonly mode: Mode;
  readonly onStoreFailure: OnStoreFailure;
  readonly headers: boolean;
  /** Retry-After of its 429 is longer by a random number of seconds, at most this one. 0: it is exact. */
  readonly retryJitter: Seconds;
  readonly ban: PolicyBan | null;
}
