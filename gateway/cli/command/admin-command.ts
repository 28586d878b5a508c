/** Commands that ask the admin API about one client or one policy, and print the reply. */
import type { Argv, Options } from 'yargs';
import type { InspectedClient } from '#gateway/operate/admin/client-routes.ts';
import type { ShownRegular } from '#gateway/operate/admin/groups.ts';
import { secondsOf } from '#gateway/policy/duration.ts';
import { counted } from '#gateway/workbench/number-text.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { GlobalOptions } from '#shared/cli/program.ts';
import { copyable } from '#shared/cli/program.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import { ADMIN_OPTIONS, type AdminOptions, accessOf, askAdmin } from './admin-client.ts';
import type { AddCommand, CommandContext } from './command.ts';

interface AdminCommand<T> {
  /** Name of the command. Unless `path` is set, it is also the last part of the path in the admin API. */
  readonly name: string;
  readonly path?: string;
  readonly describe: string;
  readonly example: readonly [command: string, effect: string];
  readonly options?: Readonly<Record<string, Options>>;
  /** Returns further fields of the request. @throws CommandError if an option is wrong */
  readonly more?: (options: Readonly<Record<string, unknown>>) => object;
  /** Returns the first line of the output. */
  readonly tell?: (answer: T) => string;
  /** Prints the lines after the first. */
  readonly print?: (answer: T, terminal: Terminal) => void;
  /** Returns the exit code of the command. Default: 0. */
  readonly exitCode?: (answer: T) => ExitCode;
}

/** The reply to shadow and unshadow. */
interface Shadowed {
  /** The policy, and those that share its counter. */
  readonly policies: readonly string[];
  /** ISO 8601; null if the policies deny. */
  readonly shadowEndsAt: string | null;
  readonly changed: boolean;
}

const SUBJECT_OPTIONS = {
  address: { type: 'string', describe: 'Reads the value as an address or a network' },
  key: { type: 'string', describe: 'Reads the value as a key' },
  digest: { type: 'string', describe: 'Reads the value as a digest' },
  identifier: {
    type: 'string',
    describe: 'Identifier of the policy file, where it has several for keys',
  },
} as const;

/** Creates a command about one client, named by an address, a network, a key or a digest. It prints the counters of the client. */
export function subjectCommand<T extends InspectedClient>(command: AdminCommand<T>): AddCommand {
  return (program, context) =>
    program.command(
      `${command.name} [subject]`,
      command.describe,
      (builder) =>
        withOptions(builder, command)
          .positional('subject', {
            type: 'string',
            describe: 'An address, a network, a digest, or else a key',
          })
          .options(SUBJECT_OPTIONS),
      (given) =>
        context.run(() => {
          const fields = { ...subjectOf(given), identifier: given.identifier };
          return run({ print: printInspected, ...command }, given, fields, context);
        }),
    );
}

/** Creates a command about one policy. */
export function policyCommand(command: AdminCommand<Shadowed>): AddCommand {
  return (program, context) =>
    program.command(
      `${command.name} <policy>`,
      command.describe,
      (builder) =>
        withOptions(builder, command).positional('policy', {
          type: 'string',
          demandOption: true,
          describe: 'Name of the policy in the policy file',
        }),
      (given) => context.run(() => run(command, given, { policy: given.policy }, context)),
    );
}

/** Returns the option `--for` of a command. */
export function forOption(daysMax: number) {
  const describe = `Duration such as 30s, 15m, 1h or 7d; at most ${daysMax}d`;
  return { type: 'string', default: '1h', describe } as const;
}

/**
 * @param text such as 30s, 15m, 1h or 7d
 * @returns seconds
 * @throws CommandError
 */
export function readFor(text: string, daysMax: number): number {
  const seconds = /^[1-9]\d{0,8}[smhd]$/.test(text) ? secondsOf(text) : null;
  if (seconds !== null && seconds <= daysMax * 86_400) return seconds;
  throw new CommandError(
    `--for ${text} is not a valid time; write 30s, 15m, 1h or 7d, at most ${daysMax}d`,
    EXIT.usage,
  );
}

function withOptions<T>(builder: Argv<GlobalOptions>, { options = {}, example }: AdminCommand<T>) {
  // A type with arbitrary option names would hide the known names from the compiler.
  return builder
    .options(options as Readonly<Record<never, Options>>)
    .options(ADMIN_OPTIONS)
    .example(...copyable(...example));
}

async function run<T>(
  { name, path = name, more, tell, print, exitCode }: AdminCommand<T>,
  given: AdminOptions & GlobalOptions,
  fields: object,
  { terminal, env }: CommandContext,
): Promise<ExitCode> {
  const body = { ...fields, ...more?.({ ...given }) };
  const answer = (await askAdmin(accessOf(given, env), 'POST', `/api/${path}`, body)) as T;
  if (given.json) terminal.json(answer);
  else {
    if (tell !== undefined) terminal.line(tell(answer));
    print?.(answer, terminal);
  }
  return exitCode?.(answer) ?? EXIT.ok;
}

interface SubjectArguments {
  readonly subject: string | undefined;
  readonly address: string | undefined;
  readonly key: string | undefined;
  readonly digest: string | undefined;
}

function subjectOf({ subject, address, key, digest }: SubjectArguments): {
  readonly subject: string;
  readonly kind?: string;
} {
  const given = Object.entries({ address, key, digest }).filter(([, value]) => value !== undefined);
  const [first] = given;
  if (first === undefined && subject !== undefined && subject !== '') return { subject };
  // `inspect 192.0.2.1 --key` says the same as `inspect --key 192.0.2.1`.
  const [kind = '', value = ''] = first ?? [];
  const text = value === '' ? (subject ?? '') : value;
  if (given.length !== 1 || text === '' || (value !== '' && subject !== undefined))
    throw new CommandError('name one address, network, key or digest; --help has an example', EXIT.usage);
  return { subject: text, kind };
}

function regularText({ until, days: [first, ...others] }: ShownRegular): string {
  const here =
    first === undefined ? '' : ` (here on ${counted(1 + others.length, 'day')}, first on ${first})`;
  return until === null ? `a newcomer${here}` : `a regular until ${until}${here}`;
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
