/**
 * Commands about one client, named by an address, a key or a digest: they ask the admin API, and tell what it knows of the
 * client afterwards.
 */
import type { Options } from 'yargs';
import type { Inspected } from '#gateway/operate/admin/inspect.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import { ADMIN_OPTIONS, askAdmin } from './admin-client.ts';
import type { AddCommand, CommandContext } from './command.ts';

/** Options of every command about one client. */
const SUBJECT_OPTIONS = {
  address: { type: 'string', describe: 'An address, to be sure that it is taken for one' },
  key: { type: 'string', describe: 'A key, to be sure that it is taken for one' },
  digest: { type: 'string', describe: 'A digest, to be sure that it is taken for one' },
  identifier: {
    type: 'string',
    describe: 'Identifier of the policy file, where it has several for keys',
  },
  ...ADMIN_OPTIONS,
} as const;

export interface SubjectCommand<T extends Inspected> {
  /** Its name, and the last part of its path in the admin API. */
  readonly name: string;
  readonly describe: string;
  readonly example: readonly [command: string, says: string];
  /** Beside those of every such command. */
  readonly options?: Readonly<Record<string, Options>>;
  /** What of them is asked. @throws CommandError that says how to write them */
  readonly more?: (options: Readonly<Record<string, unknown>>) => object;
  /** A line for people, before what is known of the client. */
  readonly tell?: (answer: T) => string;
  /** Fine unless it says otherwise. */
  readonly exitCode?: (answer: T) => ExitCode;
}

export function subjectCommand<T extends Inspected>(command: SubjectCommand<T>): AddCommand {
  const { name, describe, example, options = {} } = command;
  return (program, context) =>
    program.command(
      `${name} [subject]`,
      describe,
      (builder) =>
        builder
          .positional('subject', { type: 'string', describe: 'An address, a digest, or else a key' })
          // Of any name: told to the compiler, that would hide the names that are known.
          .options(options as Readonly<Record<never, Options>>)
          .options(SUBJECT_OPTIONS)
          .example(...example),
      (given) => context.run(() => runCommand(command, given, context)),
    );
}

async function runCommand<T extends Inspected>(
  { name, more, tell, exitCode }: SubjectCommand<T>,
  given: SubjectArguments & { readonly json: boolean },
  context: CommandContext,
): Promise<ExitCode> {
  const { terminal } = context;
  const answer = await askAbout<T>(given, context, `/api/${name}`, more?.({ ...given }));
  if (given.json) terminal.json(answer);
  else {
    if (tell !== undefined) terminal.line(tell(answer));
    printInspected(answer, terminal);
  }
  return exitCode?.(answer) ?? EXIT.ok;
}

interface SubjectArguments {
  readonly subject: string | undefined;
  readonly address: string | undefined;
  readonly key: string | undefined;
  readonly digest: string | undefined;
  readonly identifier: string | undefined;
  readonly gateway: string;
  readonly token: string | undefined;
}

/** @param path such as /api/inspect @throws CommandError */
async function askAbout<T extends Inspected>(
  options: SubjectArguments,
  { env }: CommandContext,
  path: string,
  more: object = {},
): Promise<T> {
  const { gateway, identifier } = options;
  const access = { gateway, token: options.token ?? env.GATEWAY_ADMIN_TOKEN };
  return (await askAdmin(access, 'POST', path, { ...subjectOf(options), identifier, ...more })) as T;
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
    throw new CommandError('name one address, key or digest; --help has an example', EXIT.usage);
  return { subject: text, kind };
}

function printInspected({ identity, buckets, ban }: Inspected, terminal: Terminal): void {
  const reason = ban === null || ban.reason === '' ? '' : ` (${ban.reason})`;
  const state = ban === null ? 'not banned' : terminal.style('red', `banned until ${ban.until}${reason}`);
  terminal.line(`${identity}: ${state}`);
  terminal.line();
  if (buckets.length === 0) {
    terminal.line('No bucket holds anything in its current window.');
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
