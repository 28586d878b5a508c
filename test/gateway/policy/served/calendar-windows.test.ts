/**
 * `window: day`, `week` and `month` on running gateways, with all stores. For time zones see
 * test/gateway/algorithms/calendar.test.ts.
 */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { countersOf } from '#gateway/policy/counter.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile } from '#test/support/gateway.ts';
import { processClock } from '#test/support/guarded-limiter.ts';
import { recordedOf } from '#test/support/recorded.ts';
import { onEachStore } from '#test/support/stores.ts';
import { until } from '#test/support/until.ts';

const HOUR_MS = 3_600_000;
const ROWS = [
  'name: month, route: "GET /month", identifier: ip, limit: 5, window: month',
  'name: both, route: "GET /both", identifier: ip, limits: [{ limit: 2, window: day }, { limit: 9, window: week }]',
  'name: tried, route: "GET /tried", identifier: ip, limit: 1, window: day, mode: shadow',
  'name: failed, route: "GET /failed", identifier: ip, limit: 2, window: day, count: failure',
];
const fileOf = (timezone: string): string => `timezone: ${timezone}\n${policyFile(...ROWS)}`;

/** A zone whose day does not end during the test. */
const ZONE = new Date().getUTCHours() < 20 ? 'UTC' : 'Asia/Tokyo';

/** Computes the start of the next month with Temporal. */
function monthEnd(timezone: string, now: number): number {
  const date = Temporal.Instant.fromEpochMilliseconds(now).toZonedDateTimeISO(timezone).toPlainDate();
  return date.with({ day: 1 }).add({ months: 1 }).toZonedDateTime(timezone).epochMilliseconds;
}

t.test('two gateways whose clocks differ by a day share a monthly counter', async (t) => {
  const env = { ...BEHIND_PROXY, GATEWAY_IDENTITY_SECRET: 's'.repeat(32) };
  // In memory, the clock of the only gateway is that of the store.
  const aheadMs = (number: 0 | 1, store: string) =>
    store === 'memory' ? 0 : (1 - 2 * number) * 12 * HOUR_MS;
  const options = (number: 0 | 1, store: string) => ({
    policies: fileOf(ZONE),
    clock: () => processClock() + aheadMs(number, store),
    env,
  });
  await onEachStore(t, options, async (t, one, two) => {
    const ask = (i: number, path: string, headers = {}) =>
      send((i % 2 === 0 ? one : two).port, path, {
        headers: { 'x-forwarded-for': '192.0.2.1', ...headers },
      });

    const before = Date.now();
    const replies = await Promise.all(Array.from({ length: 30 }, (_, i) => ask(i, '/month')));
    t.equal(replies.filter(({ status }) => status === 200).length, 5, 'both together admit the limit');
    const denied = await ask(1, '/month');
    t.equal(denied.status, 429);
    const left = monthEnd(ZONE, before) - before;
    const told = Number(denied.headers['retry-after']) * 1000;
    // The store's clock is this machine's.
    const passed = Date.now() - before;
    t.ok(told >= left - passed - 1000 && told <= left + 2000, `${told} ms of ${left}`);
    t.equal(denied.headers['x-ratelimit-reset'], denied.headers['retry-after']);
    t.match(denied.headers['ratelimit-policy'], '"month";q=5;w=2678400');
    t.match(denied.body.toString(), `5 in a calendar month (${ZONE})`);

    const claims = {
      date: 'Fri, 01 Jan 2100 00:00:00 GMT',
      timezone: 'Pacific/Kiritimati',
      'x-timezone': 'Pacific/Kiritimati',
      'time-zone': '+1400',
      prefer: 'timezone=Pacific/Kiritimati',
      cookie: 'tz=Pacific/Kiritimati; timezone=Pacific/Kiritimati',
    };
    for (const i of [0, 1])
      t.equal(
        (await ask(i, '/month?tz=Pacific/Kiritimati', claims)).status,
        429,
        'a client cannot move midnight',
      );

    const both = await Promise.all(Array.from({ length: 8 }, (_, i) => ask(i, '/both')));
    t.equal(both.filter(({ status }) => status === 200).length, 2);
    t.match(both.find(({ status }) => status === 200)?.headers['ratelimit-policy'], /"both.day";q=2;w=86400/);
    t.match(
      both.find(({ status }) => status === 200)?.headers['ratelimit-policy'],
      /"both.week";q=9;w=604800/,
    );
    for (let i = 0; i < 4; i++) t.equal((await ask(i, '/tried')).status, 200, 'in shadow mode');
    for (let i = 0; i < 6; i++) t.equal((await ask(i, '/failed')).status, 200, 'only failures count');

    const refused = replies.filter(({ status }) => status === 429);
    // A gateway writes its records a moment later.
    await until(async () => (await recordedOf(one.gateway, refused)) !== null);
    t.match(await recordedOf(one.gateway, refused), {
      policy: 'month',
      used: 5,
      limit: 5,
      algorithm: 'calendar-window',
    });

    // These requests were charged again.
    const client = new Digester('s'.repeat(32)).identify(
      { name: 'ip', kind: 'address', ipv6Prefix: 64 },
      '192.0.2.1',
    );
    const counters = countersOf(loadPolicies(fileOf(ZONE), 'policies.yaml'));
    const look = await one.gateway.control.look(client, counters);
    t.equal(look.states[0]?.a, 5);
    await one.gateway.control.reset(client, counters);
    for (const i of [0, 1]) await until(async () => (await ask(i, '/month')).status === 200);
  });
});
