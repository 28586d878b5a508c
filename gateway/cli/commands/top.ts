/** `top`: shows the activity of the gateway in one second. */
import { setTimeout } from 'node:timers/promises';
import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { ADMIN_OPTIONS, command } from '#gateway/cli/command/command.ts';
import type { TopSnapshot } from '#gateway/operate/admin/top.ts';
import { EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

const BETWEEN_MS = 1000;

type TopRates = ReturnType<typeof ratesOf>;

export const TOP = command({
  describe: 'What does the gateway do at this moment, and whom does it limit?',
  options: ADMIN_OPTIONS,
  examples: [['$0 top', 'Shows one second; "watch npx floodgate top" repeats it']],
  async run(options, { terminal, env, now }) {
    const snapshot = async () => {
      const reply = (await askAdmin(accessOf(options, env), 'GET', '/api/top')) as TopSnapshot;
      return [reply, now()] as const;
    };
    const [before, from] = await snapshot();
    await setTimeout(BETWEEN_MS);
    const [after, to] = await snapshot();
    const rates = ratesOf(before, after, Math.max(0.001, (to - from) / 1000));
    if (options.json) terminal.json(rates);
    else print(rates, terminal);
    return EXIT.ok;
  },
});

/** Returns the later of two snapshots, with the differences from the earlier one. */
function ratesOf(before: TopSnapshot, after: TopSnapshot, seconds: number) {
  // The counters of a gateway that was restarted in between begin at zero.
  const rate = (now: number, earlier = 0): number =>
    Math.round((Math.max(0, now - earlier) / seconds) * 10) / 10;
  const known = new Map(before.policies.map((totals) => [totals.policy, totals]));
  return {
    ...after,
    seconds,
    requestsPerSecond: rate(total(after), total(before)),
    policies: after.policies.map((totals) => ({
      ...totals,
      allowedPerSecond: rate(totals.allowed, known.get(totals.policy)?.allowed),
      deniedPerSecond: rate(totals.denied, known.get(totals.policy)?.denied),
    })),
  };
}

function total({ requests }: TopSnapshot): number {
  return Object.values(requests).reduce((sum, count) => sum + count, 0);
}

function print(rates: TopRates, terminal: Terminal): void {
  const { store, processes, requests, newcomers, policies, limited } = rates;
  const state = store.available ? 'available' : terminal.style('red', 'unavailable');
  terminal.line(
    `${rates.requestsPerSecond} requests/s; processes: ${processes}; store: ${store.kind}, ${state}, replicas: ${store.replicas}`,
  );
  terminal.line(totalsText(requests));
  if (newcomers !== null) {
    const { acts, actsFrom, ...totals } = newcomers;
    const when = actsFrom === null ? 'does not act before the store is reached' : `acts from ${actsFrom}`;
    terminal.line(
      `of policies with newcomers: ${totalsText(totals)}${acts ? '' : `; the limit of newcomers ${when}`}`,
    );
  }
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

function totalsText(totals: Readonly<Record<string, number>>): string {
  const texts = Object.entries(totals).map(([name, count]) => `${name} ${count.toLocaleString('en')}`);
  return texts.join(', ');
}
