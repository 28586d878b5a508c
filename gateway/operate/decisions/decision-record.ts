/**
 * The record of a refusal, which operators find by its id. It has digests, from which nobody can compute the address or
 * the key.
 */
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

export interface DecisionRecord {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /**
   * unavailable: the store is away, and the policy says deny. listed: the list deny names the client. banned: an operator
   * has banned the client. busy: a bound of the gateway is reached.
   */
  readonly decision: 'deny' | 'unavailable' | 'listed' | 'banned' | 'busy';
  readonly method: string;
  /** Canonical, without the query, cut to 200 characters. */
  readonly path: string;
  /** The denying policy with the longest wait; or the list, the ban or the bound. */
  readonly policy: string;
  /** Its line in the policy file, from 1; 0: the file does not have it. */
  readonly line: number;
  readonly file: string;
  /** The first characters of the file's SHA-256. */
  readonly policyVersion: string;
  /** Names of all policies that deny. */
  readonly violated: readonly string[];
  /** The limit that applied. While the store is away that is the share of the process. */
  readonly limit: number;
  /** null: unknown. */
  readonly used: number | null;
  /** How much the request would use. */
  readonly cost: number;
  readonly windowSeconds: number;
  readonly algorithm: Algorithm;
  /** When there will be room; ISO 8601. */
  readonly endsAt: string;
  /** Digest of the address or the credential that was counted. */
  readonly identity: string;
  /** Name of the identifier in the policy file. */
  readonly identifier: string;
  /** The counter is an address's for unproven credentials. */
  readonly isUnproven: boolean;
  readonly addressFrom: string;
  readonly decidedBy: 'store' | 'local';
  /** The process knew that the counter was exhausted, so it did not ask the store. */
  readonly fromMemory: boolean;
  /** The process that decided. */
  readonly replica: string;
}

/** Keeps the newest records; their number and age are bounded. */
export interface DecisionStore {
  /** @throws when they cannot be written */
  write(records: readonly DecisionRecord[]): Promise<void>;
  /** @throws when the store cannot be asked */
  find(id: string): Promise<DecisionRecord | null>;
  /**
   * The newest first.
   *
   * @param before list records older than the one with this id; null: list from the newest
   * @param count the most that are listed
   * @throws when the store cannot be asked
   */
  list(before: string | null, count: number): Promise<readonly DecisionRecord[]>;
  close(): void;
}

export const DECISIONS_MAX = 10_000;
export const DECISION_KEPT_MS: Millis = 86_400_000;
