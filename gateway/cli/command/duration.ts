/** How long, as the command line takes it. */
import { CommandError, EXIT } from '#shared/cli/exit.ts';

/** The option `--for` of a command. */
export function forOption(daysMax: number) {
  const describe = `How long: 30s, 15m, 1h or 7d; at most ${daysMax}d`;
  return { type: 'string', default: '1h', describe } as const;
}

const SECONDS = { s: 1, m: 60, h: 3600, d: 86_400 } as const;

/**
 * @param text such as 30s, 15m, 1h or 7d
 * @returns seconds, at most `daysMax` days
 * @throws CommandError that says how to write it
 */
export function readFor(text: string, daysMax: number): number {
  const [, number, unit] = /^(\d{1,9})([smhd])$/.exec(text) ?? [];
  const seconds = Number(number) * SECONDS[(unit ?? 's') as keyof typeof SECONDS];
  if (seconds >= 1 && seconds <= daysMax * SECONDS.d) return seconds;
  throw new CommandError(
    `--for ${text} cannot be; write 30s, 15m, 1h or 7d, at most ${daysMax}d`,
    EXIT.usage,
  );
}
