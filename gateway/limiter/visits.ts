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
import { DAY_MS, HISTORY_DAYS, type VisitRule } from '#gateway/policy/regulars.ts';
import { inCalls, type StoreConnection, storeScript } from '#gateway/store/connection.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import { proofKey } from './charge.ts';
import { dayOf, type History } from './history.ts';
import type { KnownCounters } from './known-counters.ts';
import { type Limiter, PROVEN_LOCALLY_MS } from './limiter.ts';
import type { Admission, NewClients } from './new-clients.ts';
import { HOUR_LUA } from './script.ts';

/** @returns the key of the days of a client */
export function historyKey({ digest }: Identity): string {
  return `fg:{${digest}}:days`;
}

/** @param packed what the store has under `historyKey` */
export function readHistory(packed: number): History {
  return { last: Math.floor(packed / 2 ** HISTORY_DAYS), days: packed % 2 ** HISTORY_DAYS };
}

const UNKNOWN = 0;
const REGULAR = 2;

/**
 * Adds a day to histories, and sets or removes the markers of regulars. The functions above do the same.
 *
 * KEYS: history and marker of each client. ARGV: the day, `visits` and `days` of the rule, and 1 if clients without a
 * history get one. Returns one of the numbers above for each client, or 1 if it has a history and is no regular.
 */
export const VISIT = storeScript(`
local floor, SPAN = math.floor, 2 ^ ${HISTORY_DAYS}
local time = redis.call('TIME')
local now = time[1] * 1000 + floor(time[2] / 1000)
local day, visits, within, begins = tonumber(ARGV[1]), tonumber(ARGV[2]), tonumber(ARGV[3]), ARGV[4] == '1'
local function ttl(until_day)
  return string.format('%.0f', math.max(1, until_day * ${DAY_MS} - now))
end
local reply = {}
for i = 1, #KEYS, 2 do
  local packed = tonumber(redis.call('GET', KEYS[i]) or 0)
  local last, days = floor(packed / SPAN), packed % SPAN
  local ago, is_new = last - day, packed == 0
  if is_new and not begins then reply[#reply + 1] = ${UNKNOWN} else
    if is_new or math.abs(ago) >= ${HISTORY_DAYS} then last, days = day, 1
    elseif ago < 0 then last, days = day, days * 2 ^ -ago % SPAN + 1
    elseif floor(days / 2 ^ ago) % 2 == 0 then days = days + 2 ^ ago end
    local found, ends = 0, nil
    for back = 0, within - 1 do
      found = found + floor(days / 2 ^ back) % 2
      if found == visits then
        ends = last - back + within
        break
      end
    end
    redis.call('SET', KEYS[i], string.format('%.0f', last * SPAN + days), 'PX', ttl(last + within))
    if ends then redis.call('SET', KEYS[i + 1], ${HOUR_LUA}, 'PX', ttl(ends)) else redis.call('DEL', KEYS[i + 1]) end
    reply[#reply + 1] = ends and ${REGULAR} or 1
  end
end
return reply
`);

/**
 * Deletes the days of a client, which is then no regular any more. The proof of a credential stays.
 *
 * KEYS: history and marker.
 */
export const FORGET_VISITS = storeScript(`
if redis.call('DEL', KEYS[1]) == 1 then return redis.call('DEL', KEYS[2]) end
return 0
`);

interface VisitsOptions {
  readonly connection: StoreConnection;
  readonly clock: Clock;
  /** Reads the store's clock. */
  readonly storeNow: () => Millis;
  readonly known: KnownCounters;
  readonly newClients: NewClients;
  readonly limiter: Pick<Limiter, 'spend'>;
}

interface Visit {
  readonly client: Identity;
  readonly network: Identity | null;
}

export class Visits {
  readonly #options: VisitsOptions;
  /** Visits that are not sent yet, by the digest of the client. */
  #pending = new Map<string, Visit>();
  #rule: VisitRule | null = null;

  constructor(options: VisitsOptions) {
    this.#options = options;
  }

  visited(client: Identity, rule: VisitRule, network: () => Identity | null): void {
    const { connection, known, storeNow } = this.#options;
    const last = dayOf(storeNow());
    if (known.histories.of(client)?.last === last || !connection.ready) return;
    known.histories.note(client, { last, days: 1 });
    this.#rule = rule;
    const visit = { client, network: network() };
    if (this.#pending.set(client.digest, visit).size === 1) setImmediate(() => this.flush());
  }

  forget(): void {
    this.#options.known.histories.clear();
  }

  /** Sends what is pending. */
  flush(): void {
    const rule = this.#rule;
    if (this.#pending.size === 0 || rule === null) return;
    const visits = [...this.#pending.values()];
    this.#pending.clear();
    const day = dayOf(this.#options.storeNow());
    for (const some of inCalls(this.#options.connection, visits, ({ client }) => historyKey(client)))
      void this.#send(some, day, rule);
  }

  async #send(visits: readonly Visit[], day: number, rule: VisitRule): Promise<void> {
    const unknown = await this.#store(visits, day, rule, false);
    if (unknown.length === 0) return;
    const admitted = await this.#admitted(unknown, rule);
    if (admitted.length > 0) await this.#store(admitted, day, rule, true);
  }

  /** @returns those that may be stored for the first time */
  async #admitted(visits: readonly Visit[], rule: VisitRule): Promise<Visit[]> {
    const { newClients, limiter, known } = this.#options;
    const answers = await Promise.all(
      visits.map(
        ({ network }) =>
          new Promise<Admission>((resolve) => newClients.admit(limiter, network, rule, resolve)),
      ),
    );
    // The next good reply of these clients tries again.
    for (const [i, { client }] of visits.entries())
      if (answers[i] === 'unavailable') known.histories.forget(client);
    return visits.filter((_, i) => answers[i] === 'admitted');
  }

  /**
   * @param begins whether clients without a history get one
   * @returns the others, which have none
   */
  async #store(visits: readonly Visit[], day: number, rule: VisitRule, begins: boolean): Promise<Visit[]> {
    const { connection, clock, known } = this.#options;
    const keys = visits.flatMap(({ client }) => [historyKey(client), proofKey(client)]);
    const args = [day, rule.visits, rule.days, Number(begins)].map(String);
    const reply = await connection.run(VISIT, keys, args).catch(() => null);
    if (!Array.isArray(reply)) {
      // The next good reply of these clients tries again.
      for (const { client } of visits) known.histories.forget(client);
      return [];
    }
    const until = clock() + PROVEN_LOCALLY_MS;
    for (const [i, { client }] of visits.entries()) {
      if (reply[i] === REGULAR) known.prove(client, until);
      // Its days have become too old, or the rule has asked for fewer before.
      else known.withdraw(client);
    }
    return visits.filter((_, i) => reply[i] === UNKNOWN);
  }
}
