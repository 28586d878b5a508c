/** Commands that ask the admin API about one client or one policy, and print the reply. */
import type { InspectedClient } from '#gateway/operate/admin/client-routes.ts';
import type { ShownRegular } from '#gateway/operate/admin/inspect.ts';
import { secondsOf } from '#gateway/policy/keys/schema-parts.ts';
import { counted } from '#gateway/workbench/number-text.ts';
import type { Command, Given, Options } from '#shared/cli/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import { accessOf, askAdmin } from './admin-client.ts';
import { ADMIN_OPTIONS, type CommandContext, command } from './command.ts';

interface AdminCommand<Answer, O extends Options> {
  /** Path in the admin API, below `/api/`. */
  readonly path: string;
  readonly describe: string;
  readonly example: readonly [command: string, effect: string];
  readonly options?: O;
  /** Returns further fields of the request. */
  readonly more?: (options: Given<O>) => object;
  /** Returns the first line of the output. */
  readonly tell?: (answer: Answer) => string;
  /** Prints the lines after the first. */
  readonly print?: (answer: Answer, terminal: Terminal) => void;
  /** Whether it is an error that nothing has changed, because the operator most likely meant something else. */
  readonly mustChange?: true;
}

/** Defines a command about one client, named by an address, a network, a key or a digest. It prints the counters of the client. */
export function subjectCommand<Answer extends InspectedClient, const O extends Options = Options>(
  definition: AdminCommand<Answer, O>,
): Command<CommandContext> {
  const options = {
    subject: { isPositional: true, describe: 'An address, a network, a digest, or else a key' },
    // These stand before the subject or behind it.
    address: { isFlag: true, describe: 'Reads the subject as an address or a network' },
    key: { isFlag: true, describe: 'Reads the subject as a key' },
    digest: { isFlag: true, describe: 'Reads the subject as a digest' },
    identifier: { describe: 'Identifier of the policy file, where it has several for keys' },
  } as const;
  return adminCommand({ print: printInspected, ...definition }, options, (given: Given<typeof options>) => {
    const { subject, identifier, address, key, digest } = given;
    const kinds = Object.entries({ address, key, digest }).filter(([, isGiven]) => isGiven);
    if (subject === undefined || subject === '' || kinds.length > 1)
      throw new CommandError('name one address, network, key or digest; --help has an example', EXIT.usage);
    return { subject, identifier, kind: kinds[0]?.[0] };
  });
}

/** The reply to shadow and unshadow. */
export interface Shadowed {
  /** The policy, and those that share its counter. */
  readonly policies: readonly string[];
  /** ISO 8601; null if the policies deny. */
  readonly shadowEndsAt: string | null;
  readonly changed: boolean;
}

/** Defines a command about one policy. */
export function policyCommand<const O extends Options = Options>(
  definition: AdminCommand<Shadowed, O>,
): Command<CommandContext> {
  const options = {
    policy: { isPositional: true, isRequired: true, describe: 'Name of the policy in the policy file' },
  } as const;
  return adminCommand(definition, options, ({ policy }: Given<typeof options>) => ({ policy }));
}

/** Returns the option `--for` of a command, in seconds. */
export function forOption(daysMax: number) {
  return {
    default: '1h',
    describe: `Duration such as 30s, 15m, 1h or 7d; at most ${daysMax}d`,
    parse(text: string): number {
      const seconds = /^[1-9]\d{0,8}[smhd]$/.test(text) ? secondsOf(text) : null;
      if (seconds !== null && seconds <= daysMax * 86_400) return seconds;
      throw new Error(`"${text}" is not a valid time; write 30s, 15m, 1h or 7d, at most ${daysMax}d`);
    },
  } as const;
}

function adminCommand<Answer, O extends Options, Named extends Options>(
  definition: AdminCommand<Answer, O>,
  named: Named,
  fieldsOf: (given: Given<Named>) => object,
): Command<CommandContext> {
  const { path, describe, example, options, more, tell, print, mustChange } = definition;
  return command({
    describe,
    options: { ...named, ...options, ...ADMIN_OPTIONS },
    examples: [example],
    async run(given, { terminal, env }) {
      const all = given as Given<typeof ADMIN_OPTIONS> & Given<Named> & Given<O>;
      const body = { ...fieldsOf(all), ...more?.(all) };
      const answer = (await askAdmin(accessOf(all, env), 'POST', `/api/${path}`, body)) as Answer;
      if (all.json) terminal.json(answer);
      else {
        if (tell !== undefined) terminal.line(tell(answer));
        print?.(answer, terminal);
      }
      const hasChanged = (answer as { readonly changed?: boolean }).changed !== false;
      return mustChange && !hasChanged ? EXIT.no : EXIT.ok;
    },
  });
}

function printInspected(
  { identity, kind, name, buckets, ban, regular }: InspectedClient,
  terminal: Terminal,
): void {
  const reason = ban === null || ban.reason === '' ? '' : ` (${ban.reason})`;
  const state = ban === null ? ': not banned' : terminal.style('red', ` banned until ${ban.until}${reason}`);
  terminal.line(`${kind} ${name}${state}${regular === null ? '' : `, ${regularText(regular)}`}`);
  if (name !== identity) terminal.line(`digest ${identity}`);
  terminal.line();
  if (buckets.length === 0) {
    terminal.line('All buckets are empty in their current window.');
    return;
  }
  terminal.table(
    ['policy', 'used', 'limit', 'resets at', ''],
    buckets.map(({ policy, used, limit, resetAt, unproven }) => [
      policy,
      used,
      limit,
      resetAt,
      unproven ? 'on unproven keys' : '',
    ]),
  );
}

function regularText({ until, days }: ShownRegular): string {
  const here = days.length === 0 ? '' : ` (here on ${counted(days.length, 'day')}, first on ${days[0]})`;
  return until === null ? `a newcomer${here}` : `a regular until ${until}${here}`;
}
