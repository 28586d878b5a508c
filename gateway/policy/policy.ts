import type { Identifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis, Seconds } from '#shared/clock.ts';
import type { Lists } from './lists.ts';
import type { Overrides } from './overrides.ts';
import type { Path } from './problems.ts';
import type { Rollout } from './rollout.ts';
import type { Route } from './route.ts';

/** How a limit is spread over time; see docs/policies.md. */
export type Algorithm = 'fixed-window' | 'sliding-window' | 'token-bucket' | 'concurrency';

/** How many units a request takes of a limit; at least 1. */
export type Cost =
  | { readonly kind: 'units'; readonly units: number }
  /** As the request's header says, at most the whole limit; 1 where it does not. Lower-case. */
  | { readonly kind: 'header'; readonly header: string }
  /** The length of its body. @param unannounced what a body takes whose length is not announced; null: all that can be used at once */
  | { readonly kind: 'body-bytes'; readonly unannounced: number | null };

/** Which requests count: all, or those of which something comes. */
export type Count = 'request' | 'failure' | 'success';

/** What a policy does while the store is unavailable. */
export type OnStoreFailure = 'allow' | 'deny' | 'local';

/**
 * One row of the table: at most `limit` requests of one identity in each window, as its algorithm understands it; or so many
 * in flight at once, and then there is no window.
 */
export interface Policy {
  readonly name: string;
  /** Position among the policies of the file, from 0. */
  readonly index: number;
  /** Where the file has it: a row, or an entry of its limits. */
  readonly at: Path;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly route: Route;
  readonly identifier: Identifier;
  /** Of whoever has no override. */
  readonly limit: number;
  /** null: it has none. */
  readonly overrides: Overrides | null;
  readonly algorithm: Algorithm;
  /** Of a token bucket, as the file has it; null: it follows the limit, also an override's. */
  readonly burst: number | null;
  /** The most that can be used at once: the limit; of a token bucket its burst. Of whoever has no override. */
  readonly capacity: number;
  readonly cost: Cost;
  readonly count: Count;
  /** 0: there is none. */
  readonly windowMs: Millis;
  readonly windowSeconds: Seconds;
  /** Name of the counter: the policy's own unless rows share one. */
  readonly bucket: string;
  /**
   * Number of that counter: the index of the first policy that uses it. That one speaks for the counter in headers,
   * metrics and denials, so that a reply does not depend on which row was asked first.
   */
  readonly bucketId: number;
  /** Which clients it counts; null: all. */
  readonly rollout: Rollout | null;
  /** Shadow policies count and report, and never deny. */
  readonly mode: 'enforce' | 'shadow';
  readonly onStoreFailure: OnStoreFailure;
  /** Tell clients about this policy in reply headers. */
  readonly headers: boolean;
}

/** A request, made some times, and what has to come of it. */
export interface PolicyTest {
  readonly name: string;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly method: string;
  readonly target: string;
  /** Names and values in turn. */
  readonly rawHeaders: readonly string[];
  readonly from: string;
  readonly times: number;
  /** The status with which the application answers. */
  readonly reply: number;
  /** Since the epoch. */
  readonly at: Millis;
  /** What a trusted proxy says of the client; null: none does. */
  readonly plan: string | null;
  readonly expect: {
    /** Names of all policies that apply. */
    readonly policies: readonly string[] | null;
    readonly allowed: number | null;
    readonly status: number | null;
    readonly headers: ReadonlyMap<string, string>;
  };
}

/** A whole, valid policy file. */
export interface PolicySet {
  readonly file: string;
  /** The beginning of the SHA-256 of its text and of the files that it names, by which two states are told apart. */
  readonly version: string;
  readonly policies: readonly Policy[];
  readonly exclude: readonly Route[];
  /** The application ignores case in paths, and so do all routes. */
  readonly ignoreCase: boolean;
  /** Lower-case name of the header in which trusted proxies name the client's plan; null: there is none. */
  readonly planHeader: string | null;
  /** Those that mean the same in every route. */
  readonly identifiers: readonly SimpleIdentifier[];
  /** null: there are none. */
  readonly lists: Lists | null;
  readonly tests: readonly PolicyTest[];
}
