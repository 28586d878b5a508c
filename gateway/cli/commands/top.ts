/** `top`: shows the activity of the gateway in one second. */
import { setTimeout } from 'node:timers/promises';
import {
  ADMIN_OPTIONS,
  type AdminAccess,
  type AdminOptions,
  accessOf,
  askAdmin,
} from '#gateway/cli/command/admin-client.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import type { TopSnapshot } from '#gateway/operate/admin/top.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import { groupLines, groupRates } from './top-groups.ts';

const BETWEEN_MS = 1000;

type TopRates = ReturnType<typeof ratesOf>;

export const addTop: AddCommand = (program, context) =>
  program.command(
    'top',
    'What does the gateway do at this moment, and whom does it limit?',
    (command) =>
      command
        .options(ADMIN_OPTIONS)
        .example(...copyable('$0 top', 'Shows one second; "watch npx floodgate top" repeats it')),
    (options) => context.run(() => top(options, context)),
  );

async function top(
  options: AdminOptions & GlobalOptions,
  { terminal, env, now }: CommandContext,
): Promise<ExitCode> {
  const access = accessOf(options, env);
  const before = await snapshot(access, now);
  await setTimeout(BETWEEN_MS);
  const rates = ratesOf(before, await snapshot(access, now));
  if (options.json) terminal.json(rates);
  else print(rates, terminal);
  return EXIT.ok;
}

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
  const rate = (now: number, earlier: number): number =>
    Math.round((Math.max(0, now - earlier) / seconds) * 10) / 10;
  const known = new Map(before.policies.map((totals) => [totals.policy, totals]));
  return {
    ...after,
    seconds,
    requestsPerSecond: rate(total(after), total(before)),
    ...groupRates(before, after, rate),
    policies: after.policies.map((totals) => ({
      ...totals,
      allowedPerSecond: rate(totals.allowed, known.get(totals.policy)?.allowed ?? 0),
      deniedPerSecond: rate(totals.denied, known.get(totals.policy)?.denied ?? 0),
    })),
  };
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
  for (const line of groupLines(rates)) terminal.line(line);
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
