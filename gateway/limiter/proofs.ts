/**
 * Reports to the store which credentials have worked. No request waits for it: if a report is lost, the credential must
 * prove itself again. All reports of one tick are one script call, because separate calls would cost as much again as
 * charging.
 *
 * Requests from a banned address wait for the store's answer whether their keys are proven. Those of one tick ask
 * together.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import { inCalls, storeScript } from '#gateway/store/connection.ts';
import { proofKey } from './charge.ts';
import { PROVEN_LOCALLY_MS, PROVEN_MS } from './limiter.ts';
import type { SharedStore } from './shared-store.ts';

/** KEYS: proof markers. ARGV: their lifetime in milliseconds. */
const PROVE = storeScript(`
for i = 1, #KEYS do redis.call('SET', KEYS[i], '1', 'PX', ARGV[1]) end
return #KEYS
`);
/** KEYS: a proof marker. */
const WITHDRAW = storeScript(`return redis.call('DEL', KEYS[1])`);
/** KEYS: proof markers. Returns 1 for each that exists, otherwise 0. */
const ARE_PROVEN = storeScript(`
local reply = {}
for i = 1, #KEYS do reply[i] = redis.call('EXISTS', KEYS[i]) end
return reply
`);

export class Proofs {
  readonly #store: SharedStore;
  /** Markers that are not sent yet. */
  #pending = new Set<string>();
  /** Credentials of this tick that the store is asked about, by digest. */
  readonly #asked = new Map<string, Identity>();
  #answered: Promise<void> | null = null;

  constructor(store: SharedStore) {
    this.#store = store;
  }

  /** @returns null if nothing has to be asked. The promise never rejects */
  ask(credentials: readonly Identity[]): Promise<void> | null {
    const { connection, clock, known } = this.#store;
    const now = clock();
    const unknown = credentials.filter(
      (one) => !known.proofs.isProven(one, now) && !known.proofs.isUnproven(one, now),
    );
    if (unknown.length === 0 || !connection.ready) return null;
    for (const credential of unknown) this.#asked.set(credential.digest, credential);
    this.#answered ??= new Promise((resolve) => setImmediate(() => resolve(this.#askAll())));
    return this.#answered;
  }

  async #askAll(): Promise<void> {
    const { connection, clock, known } = this.#store;
    const askedAt = clock();
    const calls = inCalls(connection, this.#asked.values(), proofKey);
    this.#asked.clear();
    this.#answered = null;
    const answers = calls.map(async (credentials) => {
      const reply = await connection.run(ARE_PROVEN, credentials.map(proofKey), []).catch(() => null);
      if (!Array.isArray(reply)) return;
      for (const [i, credential] of credentials.entries()) {
        if (reply[i] === 1) known.proofs.prove(credential, askedAt + PROVEN_LOCALLY_MS);
        else known.proofs.noteUnproven(credential, askedAt);
      }
    });
    await Promise.all(answers);
  }

  prove(credential: Identity): void {
    if (!this.#store.connection.ready) return;
    if (this.#pending.add(proofKey(credential)).size === 1) setImmediate(() => this.flush());
  }

  withdraw(credential: Identity): void {
    const key = proofKey(credential);
    this.#pending.delete(key);
    const { connection } = this.#store;
    if (connection.ready) connection.run(WITHDRAW, [key], []).catch(ignored);
  }

  /** Sends pending reports, so that the store has them before the next call. */
  flush(): void {
    if (this.#pending.size === 0) return;
    const { connection } = this.#store;
    const calls = inCalls(connection, this.#pending, (key) => key);
    this.#pending = new Set();
    for (const keys of calls) connection.run(PROVE, keys, [String(PROVEN_MS)]).catch(ignored);
  }
}

/** Ignores a lost report, because the next report repairs it. */
function ignored(): void {}
