/** What an abuse scenario is: one attack from one address, and what surrounds it. */
import type { Attacker } from './attacks/attacker.ts';

export type TargetName = 'floodgate' | 'nginx' | 'haproxy';
export const TARGETS: readonly TargetName[] = ['floodgate', 'nginx', 'haproxy'];

/**
 * The policy file of Floodgate: `raised` has every limit so high that no window stops the attack or the victim,
 * `shipped` is the project's own, `hourly` the project's own with windows of an hour; `leavers` is `raised`, and has
 * limits by outcome and in flight for slow answers.
 */
export type Limits = 'raised' | 'shipped' | 'hourly' | 'leavers';

/**
 * What happens to Floodgate's Redis during the attack: stopped and continued, killed and started again, its replies
 * garbled on the way, or only 12 MB of memory from the start.
 */
export type StoreTrouble = 'frozen' | 'restarted' | 'garbled' | 'small';

/**
 * Who is disturbed: a stranger at another address; a neighbour behind the attacker's address whose key has worked
 * before; or, without a key, a visitor at that address.
 */
export type VictimKind = 'stranger' | 'neighbour' | 'visitor';

export interface AbuseScenario {
  readonly name: string;
  readonly title: string;
  /** Runs in a process of its own until that is stopped. */
  attack(attacker: Attacker): void;
  readonly limits?: Limits;
  readonly victim?: VictimKind;
  /** The attacker's address is a trusted proxy: its X-Forwarded-For is believed. */
  readonly trustsAttacker?: boolean;
  readonly store?: StoreTrouble;
  /** Over TLS, the victim as well; the attacker may ask for HTTP/2. Floodgate only. */
  readonly isTls?: boolean;
  /** Default: all. */
  readonly targets?: readonly TargetName[];
  /** Redis keys are compared with what was admitted. */
  readonly countsKeys?: boolean;
  /** The upstream may see at most so many requests of the attacker, in each window of a minute that the attack touches. */
  readonly admittedPerMinuteMax?: number;
  /** The upstream must see no header that says in other words who asks or what is asked for. */
  readonly smuggles?: boolean;
}
