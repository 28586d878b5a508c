/** `ban`: refuses all requests of one client for a while. */
import type { Inspected } from '#gateway/admin/inspect.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { subjectCommand } from '../subject-command.ts';

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;
const SECONDS_MAX = 30 * SECONDS.d;

export const addBan = subjectCommand<Inspected>({
  name: 'ban',
  describe: 'Refuses all requests of a client for a while, with 429',
  example: ['$0 ban 192.0.2.7 --for 1h --reason "credential stuffing"', 'Within a second, in every process'],
  options: {
    for: { type: 'string', default: '1h', describe: 'How long: 30s, 15m, 1h or 7d; at most 30d' },
    reason: { type: 'string', describe: 'Kept beside the ban, for whoever asks later' },
  },
  more: (options) => ({ seconds: secondsOf(String(options.for)), reason: options.reason }),
});

/** @throws CommandError that says how to write it */
function secondsOf(text: string): number {
  const [, number, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * SECONDS[(unit ?? 's') as keyof typeof SECONDS];
  if (seconds >= 1 && seconds <= SECONDS_MAX) return seconds;
  throw new CommandError(`--for ${text} cannot be; write 30s, 15m, 1h or 7d, at most 30d`, EXIT.usage);
}
