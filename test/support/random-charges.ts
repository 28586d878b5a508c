/** Random requests of several clients, for tests that compare what stores decide. */
import type { Bucket, Charge } from '#gateway/limiter/charge.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { fc } from './fast-check.ts';
import { chargeOf, partUnless, partWithLimit, unprovenCombined, withValue } from './spend.ts';

/** Requests of one client in one event-loop tick. */
export interface RandomRequests {
  readonly who: number;
  /** Numbers of the policies that count it. */
  readonly policies: readonly number[];
  readonly times: number;
  readonly cost: number;
  /** It presents an unproven credential. */
  readonly unproven: boolean;
  /** It is part of a combined identity, so its identity is not its credential. */
  readonly combined: boolean;
  /** The policies count the address, unless the credential is proven. */
  readonly unless: boolean;
  /** The policies count all clients together who are not regulars, and whose credential is not proven. */
  readonly newcomers: boolean;
  /** The limit of an override; null if there is no override. */
  readonly limit: number | null;
  /** The value of the request, for policies that count different values. */
  readonly value: number;
}

export const randomRequests = (clients: number, policies: number) => ({
  who: fc.nat(clients - 1),
  policies: fc.uniqueArray(fc.nat(policies - 1), { minLength: 1 }),
  times: fc.integer({ min: 1, max: 4 }),
  cost: fc.constantFrom(1, 1, 2, 3),
  unproven: fc.boolean(),
  combined: fc.boolean(),
  unless: fc.boolean(),
  newcomers: fc.boolean(),
  limit: fc.option(fc.integer({ min: 1, max: 9 }), { freq: 3 }),
  value: fc.nat(9),
});

/** The name of a client in one run, which has its own counters. */
export const clientName = (run: number, who: number): string => `${run}-${who}`;

/** The name of the address of a client, which can become a regular. */
export const clientAddress = (run: number, who: number): string => `${run}-${who}-at`;

/** Returns what one of the requests is charged to. */
export function chargeOfRandom(
  { who, policies, cost, unproven, combined, unless, newcomers, limit, value }: RandomRequests,
  table: readonly Policy[],
  run: number,
): Charge {
  const credential = clientName(run, who);
  const counted = combined ? `${credential}-of` : credential;
  return chargeOf(
    ...policies.flatMap((number) => {
      const of = table[number];
      if (of === undefined) return [];
      const parts = partsOf(of);
      return of.distinct === null ? parts : parts.map((part) => withValue(part, `value ${value}`));
    }),
  );
  function partsOf(of: Policy): readonly Bucket[] {
    const most = limit ?? of.limit;
    if (newcomers) {
      const exempt = [...(unproven ? [credential] : []), clientAddress(run, who)];
      return [partUnless(of, `${run}-everyone`, exempt, cost, most)];
    }
    if (unless) return [partUnless(of, `${run}-address`, unproven ? [credential] : [], cost, most)];
    return unproven
      ? unprovenCombined(of, counted, credential, `${run}-address`, cost, most)
      : [partWithLimit(of, most, counted, cost)];
  }
}
