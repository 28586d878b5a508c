/** `ban`: refuses all requests of one client for a while. */
import type { Inspected } from '#gateway/admin/inspect.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { AddCommand, CommandContext } from '../command.ts';
import {
  askAbout,
  printInspected,
  SUBJECT_OPTIONS,
  SUBJECT_TEXT,
  type SubjectArguments,
} from '../subject-options.ts';

interface BanArguments extends SubjectArguments {
  readonly for: string;
  readonly reason: string | undefined;
  readonly json: boolean;
}

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
const SECONDS_MAX = 30 * SECONDS.d;

export const addBan: AddCommand = (program, context) =>
  program.command(
    'ban [subject]',
    'Refuses all requests of a client for a while, with 429',
    (command) =>
      command
        .positional('subject', { type: 'string', describe: SUBJECT_TEXT })
        .option('for', {
          type: 'string',
          default: '1h',
          describe: 'How long: 30s, 15m, 1h or 7d; at most 30d',
        })
        .option('reason', { type: 'string', describe: 'Kept beside the ban, for whoever asks later' })
        .options(SUBJECT_OPTIONS)
        .example(
          '$0 ban 192.0.2.7 --for 1h --reason "credential stuffing"',
          'Within a second, in every process',
        ),
    (options) => context.run(() => ban(options, context)),
  );

async function ban(options: BanArguments, context: CommandContext): Promise<ExitCode> {
  const more = { seconds: secondsOf(options.for), reason: options.reason };
  const inspected = await askAbout<Inspected>(options, context, '/api/ban', more);
  if (options.json) context.terminal.json(inspected);
  else printInspected(inspected, context.terminal);
  return EXIT.ok;
}

/** @throws CommandError that says how to write it */
function secondsOf(text: string): number {
  const [, number, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * SECONDS[(unit ?? 's') as keyof typeof SECONDS];
  if (seconds >= 1 && seconds <= SECONDS_MAX) return seconds;
  throw new CommandError(`--for ${text} cannot be; write 30s, 15m, 1h or 7d, at most 30d`, EXIT.usage);
}
