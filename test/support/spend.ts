/** Policies, charges and answers for tests of limiters. */
import { setTimeout as delay } from 'node:timers/promises';
import { Bucket, Charge, type Limiter, type Proof, type Spent } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { parseRoute } from '#gateway/policy/route.ts';

export function policy(
  name: string,
  limit: number,
  windowSeconds: number,
  more: Partial<Policy> = {},
): Policy {
  return {
    name,
    index: 0,
    line: 1,
    route: parseRoute('GET /'),
    identifier: { name: 'ip', kind: 'address', ipv6Prefix: 64 },
    limit,
    windowMs: windowSeconds * 1000,
    windowSeconds,
    bucket: name,
    bucketId: 0,
    mode: 'enforce',
    onStoreFailure: 'local',
    headers: true,
    ...more,
  };
}

export function bucket(of: Policy, identity = 'somebody', onlyUnproven = false): Bucket {
  return new Bucket(
    `fg:{${identity}}:${of.bucket}:${of.windowSeconds}${onlyUnproven ? ':unproven' : ''}`,
    of,
    onlyUnproven,
  );
}

export function proof(identity: string): Proof {
  return { proofKey: `fg:{${identity}}:proven`, provenUntil: 0 };
}

export type Answer =
  | { readonly kind: 'spent'; readonly admitted: boolean; readonly position: number; readonly spent: Spent }
  | { readonly kind: 'unavailable' };

export function spend(limiter: Limiter, charge: Charge): Promise<Answer> {
  return new Promise((resolve) =>
    limiter.spend(charge, {
      onSpent: (spent, position) =>
        resolve({ kind: 'spent', admitted: position < spent.admitted, position, spent }),
      onStoreUnavailable: () => resolve({ kind: 'unavailable' }),
    }),
  );
}

/** `times` requests at once; how many were admitted. */
export async function burst(limiter: Limiter, charge: Charge, times: number): Promise<number> {
  const answers = await Promise.all(Array.from({ length: times }, () => spend(limiter, charge)));
  return answers.filter((answer) => answer.kind === 'spent' && answer.admitted).length;
}

/** Waits until the current window of the wall clock has at least `roomMs` left, so that a test does not straddle two. */
export async function windowWithRoom(windowMs: number, roomMs: number): Promise<void> {
  const left = windowMs - (Date.now() % windowMs);
  if (left < roomMs) await delay(left + 5);
}

export { Charge };
