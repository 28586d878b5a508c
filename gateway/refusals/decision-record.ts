/**
 * The record of a refusal, which operators find by its id. It has digests, from which nobody can compute the address or
 * the key.
 */
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

/**
 * unavailable: the store is unavailable, and the policy has `onStoreFailure: deny`. listed: the list deny names the
 * client. banned: a ban of an operator or a policy. busy: a bound of the gateway is reached.
 */
export type RefusalKind = 'deny' | 'unavailable' | 'listed' | 'banned' | 'busy';

export interface DecisionRecord {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  readonly decision: RefusalKind;
  readonly method: string;
  /** Canonical path without the query, cut to 200 characters. */
  readonly path: string;
  /** The denying policy with the longest wait, or the name of the list, ban or bound. */
  readonly policy: string;
  /** Line of the policy in the policy file, from 1; 0 if it is not in the file. */
  readonly line: number;
  readonly file: string;
  /** The first characters of the policy file's SHA-256. */
  readonly policyVersion: string;
  /** Names of all policies that deny. */
  readonly violated: readonly string[];
  /** The limit that applied. During an outage of the store that is the share of the process. */
  readonly limit: number;
  /** Units in use before the request; null if unknown. */
  readonly used: number | null;
  /** Units that the request would use. */
  readonly cost: number;
  readonly windowSeconds: number;
  readonly algorithm: Algorithm;
  /** Time at which there is room again, in ISO 8601. */
  readonly endsAt: string;
  /** Digest of the address or the credential that was counted. */
  readonly identity: string;
  /** Name of the identifier in the policy file. */
  readonly identifier: string;
  /** Whether the counter is that of an address for unproven credentials. */
  readonly isUnproven: boolean;
  readonly addressFrom: string;
  readonly decidedBy: 'store' | 'local';
  /** Whether the process denied without calling the store, because it knew that the counter was exhausted. */
  readonly fromMemory: boolean;
  /**
   * How many refusals of this client by this policy it stands for: itself, and those without a record since the last one.
   * Missing if it stands for itself only.
   */
  readonly refusals?: number;
  /** Name of the process that decided. */
  readonly replica: string;
}

/** Keeps the newest records; their number and age are bounded. */
export interface DecisionStore {
  /** @throws if they cannot be written */
  write(records: readonly DecisionRecord[]): Promise<void>;
  /** @throws if the store is unavailable */
  find(id: string): Promise<DecisionRecord | null>;
  /**
   * Lists records, newest first.
   *
   * @param before id of a record; only older ones are listed. null lists from the newest
   * @param count maximum number of records
   * @throws if the store is unavailable
   */
  list(before: string | null, count: number): Promise<readonly DecisionRecord[]>;
  /**
   * Stores the first EXCHANGED_MAX of the clients that this gateway denied most, and returns those of each other gateway
   * of the last hour.
   *
   * @throws if the store is unavailable
   */
  exchangeDenied(gateway: string, own: readonly Ranked[]): Promise<readonly (readonly Ranked[])[]>;
  close(): void;
}

/** The most clients that a gateway tells the others. */
export const EXCHANGED_MAX = 50;
export const DECISIONS_MAX = 10_000;
export const DECISION_KEPT_MS: Millis = 86_400_000;
