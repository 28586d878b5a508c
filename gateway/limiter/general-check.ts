/** What the general script is asked, and what its reply says. Pure: no clock, no connection. */
import type { Policy } from '#gateway/policy/policy.ts';
import type { Millis } from '#shared/clock.ts';
import { type Part, proofKey } from './charge.ts';
import { type Answer, type PendingCheck, ReplyNumbers, type ScriptCall } from './check.ts';
import { type Held, type Level, levelOf } from './level.ts';

/** As scripts know them. */
export const ALGORITHMS: Readonly<Record<Policy['algorithm'], number>> = {
  'fixed-window': 1,
  'sliding-window': 2,
  'token-bucket': 3,
  concurrency: 4,
};
const SKIPPED = 1;

/** What has to be added to a counter that is no fixed window. */
export interface LevelDebt {
  readonly part: Part;
  /** Of a token bucket: units of a request divided by the window's milliseconds. */
  readonly units: number;
  /** Of a sliding window: the number of the window in which it was charged; else 0. */
  readonly window: number;
}

/** What has been charged and is to be given back. */
export interface GivenBack {
  readonly part: Part;
  readonly units: number;
  /** When it was charged, on the store's clock. */
  readonly chargedAt: Millis;
}

/** Numbers policies in the order in which a script meets them. */
class PolicyRows {
  readonly #numbers = new Map<string, number>();
  readonly rows: number[] = [];

  of({ policy: { algorithm, mode, windowMs }, limit, capacity }: Part): number {
    const most = mode === 'shadow' ? -capacity : capacity;
    const row = [ALGORITHMS[algorithm], limit, most, windowMs];
    const key = row.join();
    const known = this.#numbers.get(key);
    if (known !== undefined) return known;
    const number = this.#numbers.size + 1;
    this.#numbers.set(key, number);
    this.rows.push(...row);
    return number;
  }
}

export function generalCall(checks: readonly PendingCheck[], debts: readonly LevelDebt[] = []): ScriptCall {
  const policies = new PolicyRows();
  const keys: string[] = [];
  const charges: number[] = [];
  const owed: number[] = [];
  for (const { part, units, window } of debts) {
    keys.push(part.key);
    owed.push(policies.of(part), units, window);
  }
  for (const { charge, listeners } of checks) {
    charges.push(listeners.length, charge.parts.length);
    for (const part of charge.parts) {
      const { key, credential, cost } = part;
      const number = policies.of(part);
      if (credential !== null) keys.push(proofKey(credential.proof));
      keys.push(key);
      charges.push(credential === null ? number : -number, cost);
    }
  }
  const asked: unknown[] = [policies.rows, charges, owed];
  if (checks.some(({ leases }) => leases !== null)) asked.push(checks.map(({ leases }) => leases ?? ''));
  return { keys, args: [JSON.stringify(asked)] };
}

/**
 * @returns what was decided, check by check, and the store's time
 * @throws UnreadableReplyError when it does not fit what was asked
 */
export function readGeneralReply(
  reply: unknown,
  checks: readonly PendingCheck[],
): { readonly now: Millis; readonly answers: readonly Answer[] } {
  const numbers = new ReplyNumbers(reply);
  const now = numbers.next();
  const answers = checks.map((check): Answer => {
    const { parts } = check.charge;
    const admitted = numbers.next();
    const levels: (Level | null)[] = [];
    const held: Held[] = [];
    const proven: (boolean | null)[] = [];
    for (const part of parts) {
      const isSkipped = numbers.next() === SKIPPED;
      const holds = { a: numbers.next(), b: numbers.next() };
      held.push(holds);
      levels.push(isSkipped ? null : levelOf(part.policy, holds, now, part.capacity, part.limit));
      proven.push(part.credential === null ? null : isSkipped);
    }
    const used = levels.map((level) => level?.used ?? -1);
    return {
      check,
      spent: {
        parts,
        admitted,
        used,
        resetMs: [],
        shares: null,
        levels,
        chargedAt: parts.map(() => now),
        leases: check.leases,
      },
      charged: [],
      proven,
      held,
      now,
    };
  });
  return { now, answers };
}

/** KEYS and ARGV of the script that gives back. All have one slot. */
export function giveBackCall(list: readonly GivenBack[]): ScriptCall {
  return {
    keys: list.map(({ part }) => part.key),
    args: [
      JSON.stringify(
        list.flatMap(({ part: { policy, limit }, units, chargedAt }) => [
          ALGORITHMS[policy.algorithm],
          limit,
          policy.windowMs,
          units,
          chargedAt,
        ]),
      ),
    ],
  };
}
