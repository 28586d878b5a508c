/** What an answer of the store teaches this process: what is exhausted, what counters hold, which credentials are proven. */
import type { Millis } from '#shared/clock.ts';
import type { Answer } from './check.ts';
import { isForeseeable, type KnownCounters } from './known-counters.ts';
import { PROVEN_LOCALLY_MS } from './limiter.ts';

/**
 * @param askedAt on this process's clock, as `now`: in between the store has decided
 */
export function learn(known: KnownCounters, answers: readonly Answer[], askedAt: Millis, now: Millis): void {
  for (const answer of answers) {
    if (answer.held !== null) {
      learnLevels(known, answer, askedAt, now);
      continue;
    }
    const { spent, charged, proven } = answer;
    const { parts, resetMs } = spent;
    for (let i = 0; i < parts.length; i++) {
      const part = parts[i];
      const used = charged[i] ?? -1;
      if (part === undefined) continue;
      const isProven = proven[i] ?? null;
      if (part.credential !== null && isProven === true)
        known.prove(part.credential.proof, askedAt + PROVEN_LOCALLY_MS);
      if (used < 0) continue;
      // At the earliest the window ends so long after we asked, at the latest so long after we heard.
      const endsAt = askedAt + (resetMs[i] ?? 0) - 1;
      known.note(part, used, endsAt, now - askedAt + 1, now);
      if (part.credential === null || spent.admitted > 0) continue;
      known.noteUnproven(part.credential.proof, now);
    }
  }
}

/** Of a charge that is not plain. */
function learnLevels(known: KnownCounters, answer: Answer, askedAt: Millis, now: Millis): void {
  const { spent, held, proven } = answer;
  const { parts, levels, admitted } = spent;
  for (const [i, part] of parts.entries()) {
    const { policy, credential, cost, capacity } = part;
    if (credential !== null && proven[i] === true) known.prove(credential.proof, askedAt + PROVEN_LOCALLY_MS);
    const level = levels?.[i] ?? null;
    const holds = held?.[i] ?? null;
    if (level === null || holds === null) continue;
    if (credential !== null && admitted === 0) known.noteUnproven(credential.proof, now);
    // Of what is in flight elsewhere nothing follows a moment later.
    if (policy.algorithm === 'concurrency') continue;
    const charged = Math.max(0, Math.min(admitted, Math.floor((capacity - level.used) / cost))) * cost;
    if (part.counter.isPlain) {
      known.note(part, level.used + charged, askedAt + level.resetMs(0) - 1, now - askedAt + 1, now);
      continue;
    }
    const units = policy.algorithm === 'token-bucket' ? charged * policy.windowMs : charged;
    known.levels.note(part, { a: holds.a + units, b: holds.b }, answer.now);
    // What is given back makes room at any time.
    if (policy.mode === 'shadow' || policy.count !== 'request') continue;
    // The store is asked each time.
    if (!isForeseeable(part)) continue;
    const retryMs = level.retryMs(charged, cost);
    if (retryMs <= 0 || retryMs === Number.POSITIVE_INFINITY) continue;
    // Until then so much is used, and whoever needs more than the rest is denied.
    known.note(part, capacity - (cost - 1), askedAt + retryMs - 1, now - askedAt + 1, now);
  }
}
