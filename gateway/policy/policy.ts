import type { Millis, Seconds } from '#shared/clock.ts';
import type { Route } from './route.ts';

/** Who is counted. */
export type Identifier =
  | { readonly name: string; readonly kind: 'address'; readonly ipv6Prefix: number }
  | { readonly name: string; readonly kind: 'credential'; readonly sources: readonly CredentialSource[] };

/** Where a client presents its credential. Header names are lower-case. */
export type CredentialSource =
  | { readonly kind: 'header'; readonly header: string }
  /** `Authorization: Bearer …`, only values that begin with the prefix. */
  | { readonly kind: 'bearer'; readonly prefix: string };

/** How a limit is spread over time; see docs/policies.md. */
export type Algorithm = 'fixed-window' | 'sliding-window' | 'token-bucket';

/** How many units a request takes of a limit; at least 1. */
export type Cost =
  | { readonly kind: 'units'; readonly units: number }
  /** As the request's header says, at most the whole limit; 1 where it does not. Lower-case. */
  | { readonly kind: 'header'; readonly header: string }
  /** The length of its body. @param unannounced what a body takes whose length is not announced */
  | { readonly kind: 'body-bytes'; readonly unannounced: number };

/** Which requests count: all, or those of which something comes. */
export type Count = 'request' | 'failure' | 'success';

/** What a policy does while the store is unavailable. */
export type OnStoreFailure = 'allow' | 'deny' | 'local';

/** One row of the table: at most `limit` requests of one identity in each window, as its algorithm understands it. */
export interface Policy {
  readonly name: string;
  /** Position in the file, from 0. */
  readonly index: number;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly route: Route;
  readonly identifier: Identifier;
  readonly limit: number;
  readonly algorithm: Algorithm;
  /** The most that can be used at once: the limit; of a token bucket its burst. */
  readonly capacity: number;
  readonly cost: Cost;
  readonly count: Count;
  readonly windowMs: Millis;
  readonly windowSeconds: Seconds;
  /** Name of the counter: the policy's own unless rows share one. */
  readonly bucket: string;
  /**
   * Number of that counter: the index of the first policy that uses it. That one speaks for the counter in headers,
   * metrics and denials, so that a reply does not depend on which row was asked first.
   */
  readonly bucketId: number;
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
  /** The beginning of the SHA-256 of the file's text, by which two states of it are told apart. */
  readonly version: string;
  readonly policies: readonly Policy[];
  readonly exclude: readonly Route[];
  readonly identifiers: readonly Identifier[];
  readonly tests: readonly PolicyTest[];
}
