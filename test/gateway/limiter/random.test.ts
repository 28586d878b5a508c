/**
 * Compares the memory store, which decides one request at a time, with the script, which decides batches. They must
 * never differ.
 */
import { deepEqual, ok } from 'node:assert/strict';
import t from 'tap';
import { decide } from '#gateway/limiter/decision.ts';
import type { Spent } from '#gateway/limiter/limiter.ts';
import type { Algorithm } from '#gateway/policy/policy.ts';
import { fc } from '#test/support/fast-check.ts';
import { processClock, startLimiter } from '#test/support/guarded-limiter.ts';
import {
  chargeOfRandom,
  clientAddress,
  clientName,
  type RandomRequests,
  randomRequests,
} from '#test/support/random-charges.ts';
import { startRedis } from '#test/support/redis.ts';
import { rounds } from '#test/support/seed.ts';
import { type Answer, identity, memoryLimiter, policy, spend, VALUES } from '#test/support/spend.ts';
import { insideLongWindow, LONG_WINDOW_SECONDS } from '#test/support/window.ts';

interface Step extends RandomRequests {
  /** Whether the application accepts the credential afterwards. */
  readonly works: boolean;
  /** Whether the client is a regular afterwards. */
  readonly returns: boolean;
}

const POLICIES = 3;
const step: fc.Arbitrary<Step> = fc.record({
  ...randomRequests(4, POLICIES),
  works: fc.boolean(),
  returns: fc.boolean(),
});
/** Requests of one tick with the same charge are decided together, with the same result as one after the other. */
const turn = fc.uniqueArray(step, {
  minLength: 1,
  maxLength: 5,
  selector: ({ who, policies, unproven, cost, combined, unless, newcomers, limit, value }) =>
    `${who} ${policies} ${unproven} ${cost} ${combined} ${unless} ${newcomers} ${limit} ${value}`,
});
/** Most are fixed windows, as in most policy files. */
const algorithm = fc.constantFrom<Algorithm>(
  'fixed-window',
  'fixed-window',
  'sliding-window',
  'token-bucket',
);
const table = fc.array(
  fc.record({
    limit: fc.integer({ min: 1, max: 12 }),
    shadow: fc.boolean(),
    algorithm,
    hasValues: fc.boolean(),
  }),
  { minLength: POLICIES, maxLength: POLICIES },
);

function told(answer: Answer): unknown {
  if (answer.kind !== 'spent') return answer.kind;
  // Leaves out the usage before the request: the store reports it once for a batch, memory for each request.
  const decision = decide(answer.spent, answer.position);
  const denying =
    decision.kind === 'deny' ? decision.violated.map(({ policy: { name } }) => name).sort() : [];
  if (decision.kind === 'deny') ok(denying.length > 0, 'a denial has a reason');
  return { admitted: answer.admitted, skipped: answer.spent.states.map((state) => state === null), denying };
}

t.test('random charges in batches: Redis and memory decide alike', async (t) => {
  await insideLongWindow();
  const redis = await startRedis(t);
  const store = await startLimiter(t, redis.url);
  let run = 0;
  await fc.assert(
    fc.asyncProperty(table, fc.array(turn), async (rows, turns) => {
      run++;
      const memory = memoryLimiter({ clock: processClock });
      const policies = rows.map(({ limit, shadow, algorithm, hasValues }, i) =>
        policy(`p${i}`, limit, LONG_WINDOW_SECONDS, {
          mode: shadow ? 'shadow' : 'enforce',
          algorithm,
          ...(hasValues && algorithm === 'fixed-window' ? VALUES : {}),
        }),
      );
      for (const turn of turns) {
        const all = turn.map((step) => ({
          step,
          ofMemory: chargeOfRandom(step, policies, run),
          ofStore: chargeOfRandom(step, policies, run),
        }));
        // An override may equal the policy's limit. Then it is the same charge.
        const asked = [...new Map(all.map((one) => [one.ofStore.id, one])).values()];
        const fromMemory: Promise<Answer>[] = [];
        const fromStore: Promise<Answer>[] = [];
        for (const { step, ofMemory, ofStore } of asked) {
          for (let i = 0; i < step.times; i++) {
            fromMemory.push(spend(memory, ofMemory));
            fromStore.push(spend(store, ofStore));
          }
        }
        // Throws instead of reporting, so that fast-check looks for a shorter example.
        deepEqual((await Promise.all(fromStore)).map(told), (await Promise.all(fromMemory)).map(told));
        for (const { step } of asked) {
          const { who, works, unproven, returns, newcomers } = step;
          const proven = [
            ...(works && unproven ? [clientName(run, who)] : []),
            ...(returns && newcomers ? [clientAddress(run, who)] : []),
          ];
          for (const one of proven.map(identity)) for (const limiter of [memory, store]) limiter.prove(one);
        }
      }
      // Reads the remaining units of every counter of every policy.
      for (let who = 0; who <= 5; who++) {
        const last: Step = {
          who,
          // After the clients, their address, and all newcomers.
          unless: who === 4,
          newcomers: who === 5,
          policies: [0, 1, 2],
          times: 1,
          cost: 1,
          unproven: false,
          combined: false,
          limit: null,
          value: 0,
          works: false,
          returns: false,
        };
        const [left, expected] = await Promise.all([
          spend(store, chargeOfRandom(last, policies, run)),
          spend(memory, chargeOfRandom(last, policies, run)),
        ]);
        if (left.kind !== 'spent' || expected.kind !== 'spent') throw new Error('the store is there');
        const used = ({ states }: Spent) => states.map((state) => state?.used ?? null);
        deepEqual(used(left.spent), used(expected.spent));
      }
    }),
    { numRuns: rounds(300) },
  );
  t.ok(run >= rounds(300), `${run} runs`);
});
