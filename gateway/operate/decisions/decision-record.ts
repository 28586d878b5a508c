/**
 * What is kept of a refusal, so that an operator can ask for it by its id. Digests only: who has an address or a key can
 * work out its digest, never the other way round.
 */
import type { Algorithm } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';

export interface DecisionRecord {
  readonly id: string;
  /** ISO 8601. */
  readonly at: string;
  /**
   * unavailable: the store could not be asked, and the policy says deny; listed: the list deny names the client; banned: an
   * operator has banned it; busy: a bound of the gateway is reached.
   */
  readonly decision: 'deny' | 'unavailable' | 'listed' | 'banned' | 'busy';
  readonly method: string;
  /** Canonical, without the query, cut to 200 characters. */
  readonly path: string;
  /** Of those that deny, the one with the longest wait. */
  readonly policy: string;
  /** Its row in the policy file, from 1; 0 of what does not stand there. */
  readonly line: number;
  readonly file: string;
  /** The beginning of the SHA-256 of that file's text. */
  readonly policyVersion: string;
  /** Names of all policies that deny. */
  readonly violated: readonly string[];
  /** What applied: of one process its share while the store was away. */
  readonly limit: number;
  /** null: nobody could say. */
  readonly used: number | null;
  /** What the request takes of it. */
  readonly cost: number;
  readonly windowSeconds: number;
  readonly algorithm: Algorithm;
  /** When there is room again; ISO 8601. */
  readonly endsAt: string;
  /** Digest of the address or the credential that was counted. */
  readonly identity: string;
  /** Name of the identifier in the policy file. */
  readonly identifier: string;
  /** The counter is that of an address for unproven credentials. */
  readonly isUnproven: boolean;
  readonly addressFrom: string;
  readonly decidedBy: 'store' | 'local';
  /** The process knew the counter to be exhausted, and asked nobody. */
  readonly fromMemory: boolean;
  /** The process that decided. */
  readonly replica: string;
}

/** Keeps the newest decisions, so many and so long. */
export interface DecisionStore {
  /** @throws when they could not be written */
  write(records: readonly DecisionRecord[]): Promise<void>;
  /** @throws when the store cannot be asked */
  find(id: string): Promise<DecisionRecord | null>;
  /**
   * The newest first.
   *
   * @param before id of the newest one that is not asked for; null: begin with the newest there is
   * @param count at most
   * @throws when the store cannot be asked
   */
  list(before: string | null, count: number): Promise<readonly DecisionRecord[]>;
  close(): void;
}

export const DECISIONS_MAX = 10_000;
export const DECISION_KEPT_MS: Millis = 86_400_000;
