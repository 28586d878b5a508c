/**
 * Reports to the store which credentials have worked. Nobody waits for it: a credential that the store has forgotten
 * merely has to prove itself once more. Those that proved themselves in one tick of the event loop go out as one script:
 * where most clients are new, one script each cost as much again as to ask for their counters.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import { inCalls, type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import { proofKey } from './charge.ts';
import { PROVEN_MS } from './limiter.ts';
import { HOUR_LUA } from './script.ts';

/** KEYS proof markers; ARGV for how many milliseconds they hold. */
const PROVE = storeScript(`
local time = redis.call('TIME')
local hour = ${HOUR_LUA}
for i = 1, #KEYS do redis.call('SET', KEYS[i], hour, 'PX', ARGV[1]) end
return #KEYS
`);
/** KEYS a proof marker. */
const WITHDRAW = storeScript(`return redis.call('DEL', KEYS[1])`);

export class Proofs {
  readonly #connection: StoreConnection;
  /** Markers that are still to be sent. */
  #pending = new Set<string>();

  constructor(connection: StoreConnection) {
    this.#connection = connection;
  }

  prove(credential: Identity): void {
    if (!this.#connection.ready) return;
    if (this.#pending.add(proofKey(credential)).size === 1) setImmediate(() => this.flush());
  }

  withdraw(credential: Identity): void {
    const key = proofKey(credential);
    this.#pending.delete(key);
    if (this.#connection.ready) this.#connection.run(WITHDRAW, [key], []).catch(ignored);
  }

  /** Sends what is pending, so that whoever asks after it is asked with it. */
  flush(): void {
    if (this.#pending.size === 0) return;
    const calls = inCalls(this.#connection, this.#pending, (key) => key);
    this.#pending = new Set();
    for (const keys of calls) this.#connection.run(PROVE, keys, [String(PROVEN_MS)]).catch(ignored);
  }
}

/** The next attempt repairs it. */
function ignored(): void {}
