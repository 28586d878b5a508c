/**
 * Compares three implementations of every algorithm: the store's script in batches, the memory store one by one, and a
 * model that remembers every request. They must never differ.
 */
import { deepEqual, equal, ok } from 'node:assert/strict';
import t from 'tap';
import { type Bucket, proofKey } from '#gateway/limiter/charge.ts';
import { decide } from '#gateway/limiter/decision.ts';
import { KnownCounters } from '#gateway/limiter/known-counters.ts';
import { type LimitListener, PROVEN_LOCALLY_MS } from '#gateway/limiter/limiter.ts';
import { StoreClock } from '#gateway/limiter/store-clock.ts';
import type { Algorithm, Mode } from '#gateway/policy/policy.ts';
import { testClock } from '#test/support/clock.ts';
import { fc } from '#test/support/fast-check.ts';
import {
  chargeOfRandom,
  clientAddress,
  clientName,
  type RandomRequests,
  randomRequests,
} from '#test/support/random-charges.ts';
import { startScript } from '#test/support/script.ts';
import { rounds } from '#test/support/seed.ts';
import { identity, memoryLimiter, overridesFor, policy, spend, VALUES } from '#test/support/spend.ts';

const POLICIES = 3;
const ALGORITHMS: readonly Algorithm[] = [
  'fixed-window',
  'sliding-window',
  'token-bucket',
  'calendar-window',
];

interface Row {
  readonly algorithm: Algorithm;
  /** Whether it counts different values, if it counts in windows that begin anew. */
  readonly hasValues: boolean;
  readonly limit: number;
  /** null if it equals the limit. */
  readonly burst: number | null;
  readonly windowSeconds: number;
  readonly mode: Mode;
}

interface Turn {
  readonly afterMs: number;
  /** Error of the gateway's estimate of the store's time. */
  readonly errorMs: number;
  readonly steps: readonly Step[];
}

interface Step extends RandomRequests {
  /** Whether the application accepts the credential afterwards. */
  readonly works: boolean;
  /** Whether the client is a regular afterwards. */
  readonly returns: boolean;
}

const row: fc.Arbitrary<Row> = fc.record({
  algorithm: fc.constantFrom(...ALGORITHMS),
  hasValues: fc.boolean(),
  limit: fc.integer({ min: 1, max: 9 }),
  burst: fc.option(fc.integer({ min: 1, max: 9 })),
  windowSeconds: fc.constantFrom(1, 3, 7),
  mode: fc.constantFrom<Mode>('enforce', 'enforce', 'shadow', 'mark'),
});
const seldom = fc.nat(4).map((number) => number === 0);
const step: fc.Arbitrary<Step> = fc.record({
  ...randomRequests(3, POLICIES),
  works: seldom,
  returns: seldom,
});
const turn: fc.Arbitrary<Turn> = fc.record({
  // Includes the edges of windows.
  afterMs: fc.oneof(fc.constantFrom(0, 1, 999, 1000, 1001, 2999, 3000), fc.nat(4000)),
  errorMs: fc.integer({ min: -999, max: 999 }),
  steps: fc.array(step, { minLength: 1, maxLength: 3 }),
});

interface Charged {
  readonly at: bigint;
  readonly units: bigint;
  readonly limit: bigint;
  readonly value: string | null;
}

/** Remembers every request, and computes in exact fractions how much of it still counts. */
class Model {
  readonly #charged = new Map<string, Charged[]>();

  /** Digests of credentials and of regulars. They free a request from a part. */
  readonly proven = new Set<string>();

  wouldAdmit(parts: readonly Bucket[], now: number): boolean {
    return this.#counted(parts).every((part) => part.policy.mode !== 'enforce' || this.#passes(part, now));
  }

  spend(parts: readonly Bucket[], now: number): boolean {
    if (!this.wouldAdmit(parts, now)) return false;
    const charged = this.#counted(parts).filter(
      (part) => this.#passes(part, now) && !this.#isUsed(part, now),
    );
    for (const { key, cost, limit, value } of charged) {
      const list = this.#charged.get(key) ?? [];
      this.#charged.set(key, list);
      list.push({ at: BigInt(now), units: BigInt(cost), limit: BigInt(limit), value });
    }
    return true;
  }

  #counted(parts: readonly Bucket[]): readonly Bucket[] {
    return parts.filter(({ unlessProven }) => !unlessProven.some(({ digest }) => this.proven.has(digest)));
  }

  #passes(part: Bucket, now: number): boolean {
    return this.#isUsed(part, now) || this.#room(part, now) >= BigInt(part.cost);
  }

  /** Whether an earlier request of the window had the same value. Then this one takes nothing. */
  #isUsed({ policy, key, value }: Bucket, now: number): boolean {
    if (value === null) return false;
    const window = BigInt(policy.windowMs);
    const list = this.#charged.get(key) ?? [];
    return list.some((one) => one.value === value && one.at / window === BigInt(now) / window);
  }

  #room(part: Bucket, now: number): bigint {
    return BigInt(part.capacity) - this.#used(part, now);
  }

  #used({ policy, key, limit }: Bucket, now: number): bigint {
    const list = this.#charged.get(key) ?? [];
    const window = BigInt(policy.windowMs);
    const at = BigInt(now);
    const sum = (number: bigint): bigint =>
      list.reduce((sum, one) => (one.at / window === number ? sum + one.units : sum), 0n);
    switch (policy.algorithm) {
      case 'fixed-window':
      case 'calendar-window':
        return sum(at / window);
      case 'sliding-window':
        return sum(at / window) + ceil(sum(at / window - 1n) * (window - (at % window)), window);
      case 'token-bucket': {
        let backlog = 0n;
        let moment = 0n;
        // Each request drains it at its own limit.
        for (const one of [...list, { at, units: 0n, limit: BigInt(limit), value: null }]) {
          const left = backlog - (one.at - moment) * one.limit;
          backlog = (left > 0n ? left : 0n) + one.units * window;
          moment = one.at;
        }
        return ceil(backlog, window);
      }
      case 'concurrency':
        throw new Error('has a test of its own');
      default:
        return policy.algorithm satisfies never;
    }
  }
}

function ceil(dividend: bigint, divisor: bigint): bigint {
  return (dividend + divisor - 1n) / divisor;
}

const nobody: LimitListener = { onSpent() {}, onStoreUnavailable() {} };

t.test('the script, memory and an unbounded model give the same results for random requests', async (t) => {
  const { redis, ask } = await startScript(t);
  let run = 0;
  let denials = 0;
  let remembered = 0;
  let exact = 0;
  await fc.assert(
    fc.asyncProperty(
      fc.array(row, { minLength: POLICIES, maxLength: POLICIES }),
      fc.nat(6999),
      fc.array(turn, { minLength: 2, maxLength: 8 }),
      async (rows, startMs, turns) => {
        run++;
        const clock = testClock(Date.UTC(2026, 0, 1) + startMs);
        const memory = memoryLimiter({ clock: clock.now });
        const model = new Model();
        // Counters that a process remembers in addition to the store.
        const known = new KnownCounters({ countersMax: 4096 });
        const storeClock = new StoreClock(clock.now);
        const policies = rows.map(({ algorithm, hasValues, limit, burst, windowSeconds, mode }, index) =>
          policy(`p${index}`, limit, windowSeconds, {
            index,
            algorithm,
            ...(hasValues && /fixed|calendar/.test(algorithm) ? VALUES : {}),
            burst: algorithm === 'token-bucket' ? burst : null,
            capacity: algorithm === 'token-bucket' ? (burst ?? limit) : limit,
            overrides: { ...overridesFor('gold', 9), least: 1 },
            mode,
          }),
        );
        for (const { afterMs, errorMs, steps } of turns) {
          clock.advance(afterMs);
          const now = clock.now();
          const checks = steps.map((step) => ({
            charge: chargeOfRandom(step, policies, run),
            listeners: Array.from({ length: step.times }, () => nobody),
            leases: null,
          }));
          for (const { charge } of checks) {
            if (known.exhausted(charge, now, storeClock) === null) continue;
            remembered++;
            ok(!model.wouldAdmit(charge.buckets, now), 'what is denied from memory is surely exhausted');
          }
          const answers = await ask(now, checks, [], now + errorMs);
          for (const answer of answers) known.learn(answer, now, now);
          for (const [i, { charge, listeners }] of checks.entries()) {
            const spent = answers[i]?.spent;
            if (spent === undefined) throw new Error('an answer is missing');
            for (const position of listeners.keys()) {
              const expected = model.spend(charge.buckets, now);
              const alone = await spend(memory, charge);
              if (alone.kind !== 'spent') throw new Error('memory answers');
              const decision = decide(spent, position);
              // Throws instead of reporting, so that fast-check looks for a shorter example.
              equal(decision.kind === 'allow', expected, 'the script and the model');
              equal(alone.admitted, expected, 'memory and the model');
              deepEqual(decision, decide(alone.spent, 0), 'the script and memory');
              if (decision.kind === 'allow') continue;
              denials++;
              const retryMs = Math.max(...decision.violated.map(({ resetMs }) => resetMs));
              if (decision.violated.some(({ canNeverPass }) => canNeverPass)) continue;
              ok(model.wouldAdmit(charge.buckets, now + retryMs), 'waiting works');
              exact++;
              ok(!model.wouldAdmit(charge.buckets, now + retryMs - 1), 'and no less does');
            }
          }
          for (const { who, works, unproven, returns, newcomers } of steps) {
            const proven = [
              ...(works && unproven ? [clientName(run, who)] : []),
              ...(returns && newcomers ? [clientAddress(run, who)] : []),
            ];
            for (const one of proven.map(identity)) {
              await redis.client.set(proofKey(one), '1');
              memory.prove(one);
              known.proofs.prove(one, now + PROVEN_LOCALLY_MS);
              model.proven.add(one.digest);
            }
          }
        }
      },
    ),
    { numRuns: rounds(500) },
  );
  t.ok(denials > rounds(500), `${denials} denials`);
  t.ok(exact > rounds(300), `${exact} denials give the time to the millisecond`);
  t.ok(remembered > rounds(30), `${remembered} denials are remembered`);
});
