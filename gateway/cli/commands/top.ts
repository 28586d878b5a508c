/** `top`: shows the activity of the gateway in one second. */
import { setTimeout } from 'node:timers/promises';
import { type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, command } from '#gateway/cli/command/command.ts';
import type { TopSnapshot } from '#gateway/operate/admin/top.ts';
import { EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

const BETWEEN_MS = 1000;

type TopRates = ReturnType<typeof ratesOf>;
type Rate = (now: number, earlier: number) => number;

export const TOP = command({
  describe: 'What does the gateway do at this moment, and whom does it limit?',
  options: ADMIN_OPTIONS,
  examples: [['$0 top', 'Shows one second; "watch npx floodgate top" repeats it']],
  async run(options, { terminal, env, now }) {
    const access = accessOf(options, env);
    const before = await snapshot(access, now);
    await setTimeout(BETWEEN_MS);
    const rates = ratesOf(before, await snapshot(access, now));
    if (options.json) terminal.json(rates);
    else print(rates, terminal);
    return EXIT.ok;
  },
});

interface Timed {
  readonly at: number;
  readonly snapshot: TopSnapshot;
}

async function snapshot(access: AdminAccess, now: () => number): Promise<Timed> {
  const snapshot = (await askAdmin(access, 'GET', '/api/top')) as TopSnapshot;
  return { at: now(), snapshot };
}

/** Returns the later of two snapshots, with the differences from the earlier one. */
function ratesOf({ snapshot: before, at: from }: Timed, { snapshot: after, at: to }: Timed) {
  const seconds = Math.max(0.001, (to - from) / 1000);
  // The counters of a gateway that was restarted in between begin at zero.
  const rate: Rate = (now, earlier) => Math.round((Math.max(0, now - earlier) / seconds) * 10) / 10;
  const known = new Map(before.policies.map((totals) => [totals.policy, totals]));
  return {
    ...after,
    seconds,
    requestsPerSecond: rate(total(after), total(before)),
    newcomers: newcomersRates(before.newcomers, after.newcomers, rate),
    policies: after.policies.map((totals) => ({
      ...totals,
      allowedPerSecond: rate(totals.allowed, known.get(totals.policy)?.allowed ?? 0),
      deniedPerSecond: rate(totals.denied, known.get(totals.policy)?.denied ?? 0),
    })),
  };
}

function newcomersRates(before: TopSnapshot['newcomers'], after: TopSnapshot['newcomers'], rate: Rate) {
  if (after === null) return null;
  const of = (name: 'regulars' | 'newcomers' | 'denied' | 'shadowDenied' | 'overloaded'): number =>
    rate(after[name], before?.[name] ?? 0);
  return {
    ...after,
    regularsPerSecond: of('regulars'),
    newcomersPerSecond: of('newcomers'),
    deniedPerSecond: of('denied'),
    shadowDeniedPerSecond: of('shadowDenied'),
    overloadedPerSecond: of('overloaded'),
  };
}

function newcomersText(rates: NonNullable<ReturnType<typeof newcomersRates>>): string {
  const { shadowDeniedPerSecond, waiting, overloadedPerSecond, acts, actsFrom } = rates;
  const parts = [
    `newcomers: ${rates.newcomersPerSecond}/s`,
    `${rates.deniedPerSecond}/s denied`,
    ...(shadowDeniedPerSecond > 0 ? [`${shadowDeniedPerSecond}/s would be denied`] : []),
    ...(waiting > 0 ? [`${waiting} waiting`] : []),
    ...(overloadedPerSecond > 0 ? [`${overloadedPerSecond}/s refused by protect`] : []),
  ];
  const when = actsFrom === null ? 'does not act before the store is reached' : `acts from ${actsFrom}`;
  const from = acts ? '' : `; the limit ${when}`;
  return `regulars: ${rates.regularsPerSecond}/s; ${parts.join(', ')}${from}`;
}

function total({ requests }: TopSnapshot): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}

function print(rates: TopRates, terminal: Terminal): void {
  const { store, processes, requests, policies, limited } = rates;
  const state = store.available ? 'available' : terminal.style('red', 'unavailable');
  terminal.line(
    `${rates.requestsPerSecond} requests/s; processes: ${processes}; store: ${store.kind}, ${state}, replicas: ${store.replicas}`,
  );
  terminal.line(
    Object.entries(requests)
      .map(([outcome, count]) => `${outcome} ${count.toLocaleString('en')}`)
      .join(', '),
  );
  if (rates.newcomers !== null) terminal.line(newcomersText(rates.newcomers));
  if (policies.length > 0) {
    terminal.line();
    terminal.table(
      ['policy', 'allowed/s', 'denied/s', 'allowed', 'denied', 'shadow denied', 'marked'],
      policies.map((one) => [
        one.policy,
        one.allowedPerSecond,
        one.deniedPerSecond,
        one.allowed,
        one.denied,
        one.shadowDenied,
        one.marked,
      ]),
    );
  }
  if (limited.length === 0) return;
  terminal.line();
  terminal.table(
    ['denied most', 'denied', 'last by policy'],
    limited.map(({ identity, denied, isExact, policy }) => [
      identity,
      isExact ? denied : `at least ${denied}`,
      policy,
    ]),
  );
}
