/** Pending checks: what one script asks of the store, and what its reply says. Pure: no clock, no connection. */

import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { type Charge, proofKey } from './charge.ts';
import { type Held, untilWindowEnd } from './level.ts';
import type { LimitListener, Spent } from './limiter.ts';
import type { Debt } from './owed.ts';

/** A charge, and all who wait for it. */
export interface PendingCheck {
  readonly charge: Charge;
  readonly listeners: LimitListener[];
  /** What the leases are called that it takes; null: it takes none. */
  readonly leases: string | null;
}

/** KEYS and ARGV of the spend script. */
export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly [string];
}

/** What the store said of a charge. */
export interface Answer {
  readonly check: PendingCheck;
  readonly spent: Spent;
  /** Per part: what was charged after this, as far as this reply knows; -1: nothing is known. */
  readonly charged: readonly number[];
  /** Per part: the store knew the credential whose address this part is about, or not; null in all other parts. */
  readonly proven: readonly (boolean | null)[];
  /** Per part of a charge that is not plain: what its counter held before, and when, on the store's clock. */
  readonly held: readonly (Held | null)[] | null;
  readonly now: Millis;
}

/** How many keys of the store a charge names. */
export function keysOf({ parts }: Charge): number {
  let keys = 0;
  for (const { credential } of parts) keys += credential === null ? 1 : 2;
  return keys;
}

/** Numbers policies in the order in which a script meets them. */
class PolicyNumbers {
  readonly #numbers = new Map<Policy, number>();
  /** Of those whose limit an override changes. */
  readonly #overridden = new Map<string, number>();
  /** Limit, negative in shadow; window. */
  readonly rows: number[] = [];

  of(policy: Policy, limit = policy.limit): number {
    if (limit !== policy.limit) return this.#ofOverride(policy, limit);
    const known = this.#numbers.get(policy);
    if (known !== undefined) return known;
    const number = this.#add(policy, limit);
    this.#numbers.set(policy, number);
    return number;
  }

  #ofOverride(policy: Policy, limit: number): number {
    // By what its row says: after a reload, policies of both files may be in one call.
    const key = `${policy.mode} ${limit} ${policy.windowMs}`;
    const known = this.#overridden.get(key);
    if (known !== undefined) return known;
    const number = this.#add(policy, limit);
    this.#overridden.set(key, number);
    return number;
  }

  #add({ mode, windowMs }: Policy, limit: number): number {
    const number = this.#numbers.size + this.#overridden.size + 1;
    this.rows.push(mode === 'shadow' ? -limit : limit, windowMs);
    return number;
  }
}

export function scriptCall(checks: readonly PendingCheck[], debts: readonly Debt[] = []): ScriptCall {
  const numbers = new PolicyNumbers();
  const keys: string[] = [];
  const charges: number[] = [];
  const owed: number[] = [];
  for (const { key, policy, times } of debts) {
    keys.push(key);
    owed.push(numbers.of(policy), times);
  }
  for (const { charge, listeners } of checks) {
    charges.push(listeners.length, 0);
    const head = charges.length - 1;
    let isUnproven = false;
    for (const { key, policy, limit, credential } of charge.parts) {
      if (credential === null) {
        keys.push(key);
        charges.push(numbers.of(policy, limit));
        continue;
      }
      // It stands behind its credential's own part.
      isUnproven = true;
      keys.push(proofKey(credential.proof), key);
      charges[charges.length - 1] = -numbers.of(policy, limit);
    }
    const parts = charges.length - 1 - head;
    charges[head] = isUnproven ? -parts : parts;
  }
  return { keys, args: [JSON.stringify([numbers.rows, charges, owed])] };
}

/** The store's reply is not one of our script's. */
export class UnreadableReplyError extends Error {}

/** Reads one number of a reply after the other. */
export class ReplyNumbers {
  readonly #list: readonly unknown[];
  #at = 0;

  constructor(reply: unknown) {
    this.#list = parse(reply);
  }

  next(): number {
    const value = this.#list[this.#at++];
    if (typeof value !== 'number') throw new UnreadableReplyError('the store sent a reply of another length');
    return value;
  }

  /** @returns the number at a place counted from 0, or -1 behind the end */
  at(place: number): number {
    const value = this.#list[place];
    return typeof value === 'number' ? value : -1;
  }
}

function parse(reply: unknown): readonly unknown[] {
  try {
    const list: unknown = JSON.parse(String(reply));
    if (Array.isArray(list)) return list;
  } catch (cause) {
    throw new UnreadableReplyError('the store sent a reply that cannot be read', { cause });
  }
  throw new UnreadableReplyError('the store sent a reply that cannot be read');
}

/**
 * @returns what was decided, check by check, and the store's time
 * @throws UnreadableReplyError when it does not fit what was asked
 */
export function readReply(
  reply: unknown,
  checks: readonly PendingCheck[],
): { readonly now: Millis; readonly answers: readonly Answer[] } {
  const numbers = new ReplyNumbers(reply);
  const now = numbers.next();
  // Behind the counters: the charges of which not all are admitted.
  let cut = 1;
  for (const { charge } of checks) cut += charge.parts.length;
  const answers: Answer[] = [];
  for (const [place, check] of checks.entries()) {
    const { parts } = check.charge;
    let admitted = check.listeners.length;
    if (numbers.at(cut) === place) {
      admitted = numbers.at(cut + 1);
      cut += 2;
    }
    const used: number[] = [];
    const resetMs: Millis[] = [];
    const charged: number[] = [];
    const proven: (boolean | null)[] = [];
    for (const part of parts) {
      const before = numbers.next();
      const { limit } = part;
      const { windowMs } = part.policy;
      used.push(before);
      charged.push(before < 0 ? -1 : Math.max(before, Math.min(before + admitted, limit)));
      resetMs.push(untilWindowEnd(now, windowMs));
      proven.push(part.credential === null ? null : before === -1);
    }
    answers.push({
      check,
      spent: {
        parts,
        admitted,
        used,
        resetMs,
        shares: null,
        levels: null,
        chargedAt: null,
        leases: null,
      },
      charged,
      proven,
      held: null,
      now,
    });
  }
  return { now, answers };
}
