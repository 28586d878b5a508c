/**
 * Stores in Redis on which days clients had good replies. No request waits for it. The first good reply of a client on a
 * day is one entry of a call; all entries of one tick are one call. Further replies of the day cost a look into the memory
 * of the process.
 *
 * A history is one number for each client: its last day times 2^31, plus the set of its days (history.ts). While the days
 * are enough, the client also has a marker like that of a proven credential. So the script that decides charges looks for
 * one kind of marker only.
 */
import type { Identity } from '#gateway/identity/digest.ts';
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/groups.ts';
import { inCalls, KEYS_PER_SCRIPT_MAX, storeScript } from '#gateway/store/connection.ts';
import { proofKey } from './charge.ts';
import {
  type ClientHistory,
  dayOf,
  type History,
  historyKey,
  packed,
  regularUntil,
  unpacked,
  visitedOn,
} from './history.ts';
import { PROVEN_LOCALLY_MS } from './limiter.ts';
import { NewClients, type VisitsLog } from './new-clients.ts';
import type { Replicas } from './replicas.ts';
import type { SharedStore } from './shared-store.ts';

/**
 * Adds days to histories, and sets or removes the markers of regulars. The functions of history.ts do the same.
 *
 * KEYS: history and marker of each client. ARGV: `visits` and `days` of the rule, 1 if clients without a history get one,
 * and for each client a history with the days. Returns the history of each client, 0 if it gets none.
 */
export const VISIT = storeScript(`
local floor, SPAN = math.floor, 2 ^ ${HISTORY_DAYS}
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local visits, within, begins = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1'
local function ttl(until_day)
  return string.format('%.0f', math.max(1, until_day * ${DAY_MS} - now))
end
local reply = {}
for i = 1, #KEYS, 2 do
  local stored, added = tonumber(redis.call('GET', KEYS[i]) or 0), tonumber(ARGV[3 + (i + 1) / 2])
  if stored == 0 and not begins then reply[#reply + 1] = 0 else
    local last, days = floor(added / SPAN), added % SPAN
    local ahead, before = last - floor(stored / SPAN), stored % SPAN
    if math.abs(ahead) < ${HISTORY_DAYS} then
      if ahead >= 0 then days = bit.bor(days, before * 2 ^ ahead % SPAN) else
        last, days = last - ahead, bit.bor(days * 2 ^ -ahead % SPAN, before)
      end
    end
    local found, ends = 0, nil
    for back = 0, within - 1 do
      found = found + floor(days / 2 ^ back) % 2
      if found == visits then
        ends = last - back + within
        break
      end
    end
    redis.call('SET', KEYS[i], string.format('%.0f', last * SPAN + days), 'PX', ttl(last + within))
    if ends then redis.call('SET', KEYS[i + 1], '1', 'PX', ttl(ends)) else redis.call('DEL', KEYS[i + 1]) end
    reply[#reply + 1] = last * SPAN + days
  end
end
return reply
`);

/** Each client has two keys. */
const KEYS_PER_CLIENT = 2;
const CLIENTS_PER_CALL = KEYS_PER_SCRIPT_MAX / KEYS_PER_CLIENT;

interface Visit extends ClientHistory {
  /** The days that were known before. null if there were none. */
  readonly before: History | null;
  /** Whether the store has had them. */
  readonly isKnown: boolean;
  readonly network: Identity | null;
}

export class Visits {
  readonly #store: SharedStore;
  readonly #replicas: Pick<Replicas, 'count'>;
  readonly #newClients: NewClients;
  /** Visits that are not sent yet, by the digest of the client. */
  #pending = new Map<string, Visit>();
  #rule: VisitRule | null = null;
  #isRestoring = false;

  /** @param log gets a line when no more new clients are stored on a day */
  constructor(store: SharedStore, replicas: Pick<Replicas, 'count'>, log: VisitsLog) {
    this.#store = store;
    this.#replicas = replicas;
    this.#newClients = new NewClients(log);
  }

  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void {
    const { connection, known, storeClock } = this.#store;
    const last = dayOf(storeClock.now());
    const before = known.histories.of(client);
    if (before?.last === last || !connection.ready) return;
    const isKnown = before !== null && before.days > 0 && before.last > last - rule.days;
    const history = isKnown ? visitedOn(last, before) : { last, days: 1 };
    // The store may not remember a client of which nothing is known. Without a day it is not written back.
    known.histories.note(client, isKnown ? history : { last, days: 0 });
    this.#rule = rule;
    const visit = { client, history, before, isKnown, network: network() };
    if (this.#pending.set(client.digest, visit).size === 1) setImmediate(() => this.flush());
  }

  /** Sends what is pending. */
  flush(): void {
    const rule = this.#rule;
    if (this.#pending.size === 0 || rule === null) return;
    const visits = [...this.#pending.values()];
    this.#pending.clear();
    for (const some of this.#inCalls(visits)) void this.#send(some, rule);
  }

  async #send(visits: readonly Visit[], rule: VisitRule): Promise<void> {
    const unknown = await this.#write(visits, rule, false);
    if (unknown === null) return this.#retryLater(visits);
    const most = Math.ceil(rule.newPerDay / this.#replicas.count);
    const day = dayOf(this.#store.storeClock.now());
    // The store has lost those that this process knows.
    const begin = unknown.filter(
      ({ isKnown, network }) => isKnown || this.#newClients.admit(network, most, day),
    );
    if (begin.length > 0 && (await this.#write(begin, rule, true)) === null) this.#retryLater(begin);
  }

  #inCalls<T extends ClientHistory>(clients: readonly T[]): T[][] {
    return inCalls(
      this.#store.connection,
      clients,
      ({ client }) => historyKey(client),
      () => KEYS_PER_CLIENT,
    );
  }

  /** The next good reply of these clients tries again. */
  #retryLater(visits: readonly Visit[]): void {
    const { histories } = this.#store.known;
    for (const { client, before } of visits)
      if (before === null) histories.forget(client);
      else histories.note(client, before);
  }

  /**
   * Writes back what the store has lost, if anything. One call waits for the one before, so that the store can serve
   * others meanwhile. If it is interrupted, the next heartbeat begins again.
   */
  async restore(): Promise<void> {
    const { histories } = this.#store.known;
    const rule = this.#rule;
    if (this.#isRestoring || !histories.areLost || rule === null) return;
    this.#isRestoring = true;
    histories.areLost = false;
    const first = dayOf(this.#store.storeClock.now()) - rule.days;
    let some: ClientHistory[] = [];
    const isWritten = async (): Promise<boolean> => {
      const calls = this.#inCalls(some);
      some = [];
      return !(await Promise.all(calls.map((call) => this.#write(call, rule, true)))).includes(null);
    };
    for (const one of histories.stored()) {
      if (one.history.last <= first) continue;
      if (some.push(one) >= CLIENTS_PER_CALL && !(await isWritten())) histories.areLost = true;
      if (histories.areLost) break;
    }
    if (!(await isWritten())) histories.areLost = true;
    this.#isRestoring = false;
  }

  /**
   * @param begins whether clients without a history get one
   * @returns the others, which have none; null if the store did not answer
   */
  async #write<T extends ClientHistory>(
    clients: readonly T[],
    rule: VisitRule,
    begins: boolean,
  ): Promise<T[] | null> {
    const { connection, clock, known } = this.#store;
    const keys = clients.flatMap(({ client }) => [historyKey(client), proofKey(client)]);
    const added = clients.map(({ history }) => packed(history));
    const args = [rule.visits, rule.days, Number(begins), ...added].map(String);
    const reply = await connection.run(VISIT, keys, args).catch(() => null);
    if (!Array.isArray(reply)) return null;
    const until = clock() + PROVEN_LOCALLY_MS;
    for (const [i, { client }] of clients.entries()) {
      if (reply[i] === 0) continue;
      const history = unpacked(Number(reply[i]));
      known.histories.note(client, history);
      if (regularUntil(history, rule) !== null) known.proofs.prove(client, until);
      // Its days have become too old, or the rule has asked for fewer before.
      else known.proofs.withdraw(client);
    }
    return clients.filter((_, i) => reply[i] === 0);
  }
}
