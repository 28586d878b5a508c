/** `top`: shows the current activity of the gateway. */

import type { ReadStream } from 'node:tty';
import { ADMIN_OPTIONS, type AdminAccess, accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import type { TopSnapshot } from '#gateway/operate/admin/top.ts';
import { EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

const EVERY_MS = 1000;
const CTRL_C = '\u0003';

interface TopArguments extends AdminAccess, GlobalOptions {
  readonly once: boolean;
}

/** The later of two snapshots, with the differences from the earlier one. */
interface TopRates extends TopSnapshot {
  /** Time between the two snapshots. */
  readonly seconds: number;
  readonly requestsPerSecond: number;
  readonly policies: readonly (TopSnapshot['policies'][number] & {
    readonly allowedPerSecond: number;
    readonly deniedPerSecond: number;
  })[];
}

export const addTop: AddCommand = (program, context) =>
  program.command(
    'top',
    'What does the gateway do at this moment, and whom does it limit?',
    (command) =>
      command
        .option('once', { type: 'boolean', default: false, describe: 'One second, printed once' })
        .options(ADMIN_OPTIONS)
        .example(...copyable('$0 top', 'A live view; q or Ctrl-C ends it'))
        .example(...copyable('$0 top --once --json', 'Prints the activity of one second as a JSON document')),
    (options) => context.run(() => top(options, context)),
  );

async function top(options: TopArguments, { terminal, env, now, stdin }: CommandContext): Promise<ExitCode> {
  const access = accessOf(options, env);
  const screen = new Screen(stdin);
  try {
    let before = await snapshot(access, now);
    for (;;) {
      if (await screen.endsWithin(EVERY_MS)) return EXIT.ok;
      const after = await snapshot(access, now);
      const rates = ratesOf(before, after);
      if (options.json) terminal.json(rates);
      else {
        if (!options.once) terminal.clear();
        print(rates, terminal);
      }
      // A pipe gets one snapshot, because its reader does not press q.
      if (options.once || options.json || !terminal.isScreen) return EXIT.ok;
      before = after;
    }
  } finally {
    screen.close();
  }
}

interface Timed {
  readonly at: number;
  readonly snapshot: TopSnapshot;
}

async function snapshot(access: AdminAccess, now: () => number): Promise<Timed> {
  const snapshot = (await askAdmin(access, 'GET', '/api/top')) as TopSnapshot;
  return { at: now(), snapshot };
}

function ratesOf({ snapshot: before, at: from }: Timed, { snapshot: after, at: to }: Timed): TopRates {
  const seconds = Math.max(0.001, (to - from) / 1000);
  // The counters of a gateway that was restarted in between begin at zero.
  const rate = (now: number, earlier: number): number =>
    Math.round((Math.max(0, now - earlier) / seconds) * 10) / 10;
  const known = new Map(before.policies.map((totals) => [totals.policy, totals]));
  return {
    ...after,
    seconds,
    requestsPerSecond: rate(total(after), total(before)),
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
  if (policies.length > 0) {
    terminal.line();
    terminal.table(
      ['policy', 'allowed/s', 'denied/s', 'allowed', 'denied', 'shadow denied'],
      policies.map((one) => [
        one.policy,
        one.allowedPerSecond,
        one.deniedPerSecond,
        one.allowed,
        one.denied,
        one.shadowDenied,
      ]),
    );
  }
  if (limited.length === 0) return;
  terminal.line();
  terminal.table(
    ['denied most', 'denied', 'last by policy'],
    limited.map(({ identity, denied, policy }) => [identity, denied, policy]),
  );
}

/** Draws on a terminal until the user presses q or Ctrl-C. */
class Screen {
  readonly #stdin: ReadStream;
  readonly #ended: Promise<true>;
  #onData: (data: Buffer) => void = () => undefined;

  constructor(stdin: ReadStream) {
    this.#stdin = stdin;
    this.#ended = new Promise((resolve) => {
      this.#onData = (data) => {
        // In raw mode, Ctrl-C arrives as a character and not as a signal.
        const text = data.toString();
        if (text.includes('q') || text.includes('Q') || text.includes(CTRL_C)) resolve(true);
      };
    });
    if (!stdin.isTTY) return;
    stdin.setRawMode(true);
    stdin.on('data', this.#onData);
  }

  /** @returns whether the user ends the command */
  async endsWithin(ms: number): Promise<boolean> {
    let timer: NodeJS.Timeout | undefined;
    const waited = new Promise<false>((resolve) => {
      timer = setTimeout(resolve, ms, false);
    });
    const ends = await Promise.race([this.#ended, waited]);
    clearTimeout(timer);
    return ends;
  }

  close(): void {
    if (!this.#stdin.isTTY) return;
    this.#stdin.off('data', this.#onData);
    this.#stdin.setRawMode(false);
    this.#stdin.pause();
  }
}
