/**
 * Reports to the store which credentials have worked. No request waits for it: if a report is lost, the credential must
 * prove itself again. All reports of one tick are one script call, because separate calls would cost as much again as
 * charging.
 *
 * Requests from a banned address wait for the store's answer whether their keys are proven. Those of one tick ask
 * together.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import { inCalls, type StoreConnection } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { within } from '#shared/within.ts';
import { proofKey } from './charge.ts';
import type { KnownCounters } from './known-counters.ts';
import { PROVEN_LOCALLY_MS, PROVEN_MS } from './limiter.ts';
import { ARE_PROVEN, PROVE, WITHDRAW } from './proof-scripts.ts';

interface ProofsOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  readonly known: KnownCounters;
  /** How long requests wait for an answer. */
  readonly answerMs: Millis;
}

/** Credentials of one call to the store, by digest. */
interface Question {
  readonly credentials: Map<string, Identity>;
  readonly answered: Promise<void>;
}

export class Proofs {
  readonly #options: ProofsOptions;
  /** Markers that are not sent yet. */
  #pending = new Set<string>();
  #question: Question | null = null;

  constructor(options: ProofsOptions) {
    this.#options = options;
  }

  /** @returns null if nothing has to be asked. The promise never rejects */
  ask(credentials: readonly Identity[]): Promise<void> | null {
    const { connection, clock, known } = this.#options;
    const now = clock();
    const unknown = credentials.filter(
      (one) => !known.proofs.isProven(one, now) && !known.proofs.isUnproven(one, now),
    );
    if (unknown.length === 0 || !connection.ready) return null;
    this.#question ??= {
      credentials: new Map(),
      answered: new Promise((resolve) => setImmediate(() => resolve(this.#askAll()))),
    };
    for (const credential of unknown) this.#question.credentials.set(credential.digest, credential);
    return this.#question.answered;
  }

  async #askAll(): Promise<void> {
    const { connection } = this.#options;
    const asked = [...(this.#question?.credentials.values() ?? [])];
    this.#question = null;
    await Promise.all(inCalls(connection, asked, proofKey).map((some) => this.#askSome(some)));
  }

  async #askSome(credentials: readonly Identity[]): Promise<void> {
    const { connection, clock, known, answerMs } = this.#options;
    const askedAt = clock();
    const work = connection.run(ARE_PROVEN, credentials.map(proofKey), []);
    const reply = await within(answerMs, work).catch(() => null);
    if (!Array.isArray(reply)) return;
    for (const [i, credential] of credentials.entries()) {
      if (reply[i] === 1) known.proofs.prove(credential, askedAt + PROVEN_LOCALLY_MS);
      else known.proofs.noteUnproven(credential, askedAt);
    }
  }

  prove(credential: Identity): void {
    if (!this.#options.connection.ready) return;
    if (this.#pending.add(proofKey(credential)).size === 1) setImmediate(() => this.flush());
  }

  withdraw(credential: Identity): void {
    const key = proofKey(credential);
    this.#pending.delete(key);
    const { connection } = this.#options;
    if (connection.ready) connection.run(WITHDRAW, [key], []).catch(ignored);
  }

  /** Sends pending reports, so that the store has them before the next call. */
  flush(): void {
    if (this.#pending.size === 0) return;
    const { connection } = this.#options;
    const calls = inCalls(connection, this.#pending, (key) => key);
    this.#pending = new Set();
    for (const keys of calls) connection.run(PROVE, keys, [String(PROVEN_MS)]).catch(ignored);
  }
}

/** Ignores a lost report, because the next report repairs it. */
function ignored(): void {}
