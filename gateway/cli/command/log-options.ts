/** Opens the access logs that the arguments name. */

import { FORMATS, type FormatName } from '#gateway/workbench/replay/formats/formats.ts';
import { UnknownFormatError } from '#gateway/workbench/replay/log-file.ts';
import { LOGS_MAX, LogFiles } from '#gateway/workbench/replay/log-files.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { HEADER_OPTION, whyUnreadable } from './arguments.ts';
import { STANDARD_INPUT } from './command.ts';
import { Progress } from './progress.ts';

/** Options of every command that reads access logs. */
export const LOG_OPTIONS = {
  format: {
    choices: FORMATS,
    describe: 'Format of the logs; detected from their first lines by default',
  },
  'trusted-proxies': {
    type: 'string',
    default: 'none',
    describe: 'As GATEWAY_TRUSTED_PROXIES: whose X-Forwarded-For counts, where the log has it',
  },
  header: {
    ...HEADER_OPTION,
    describe: "'NAME=FIELD': the field of an Envoy log that has this header field",
  },
} as const;

/** The positional argument of these commands. */
export const LOGS = {
  type: 'string',
  array: true,
  demandOption: true,
  describe: 'Access logs, also compressed with gzip; - for standard input',
} as const;

export interface LogOptions {
  readonly logs: readonly string[];
  readonly format: FormatName | undefined;
  readonly trustedProxies: string;
  readonly header: readonly string[];
}

interface OpenedLogs {
  readonly logs: LogFiles;
  readonly trust: ProxyTrust;
  readonly progress: Progress;
}

/** @throws CommandError exit 2 with the correct form of an option, exit 3 for a missing file */
export function openLogs(options: LogOptions, terminal: Terminal, now: () => number): OpenedLogs {
  const { logs: files, format, trustedProxies, header } = options;
  if (files.length > LOGS_MAX)
    throw new CommandError(
      `${files.length} logs are more than ${LOGS_MAX}; join some of them, such as: cat a.log b.log | floodgate replay -`,
      EXIT.usage,
    );
  if (files.filter((name) => name === STANDARD_INPUT).length > 1)
    throw new CommandError('standard input (-) can be read only once', EXIT.usage);
  const trust = readTrust(trustedProxies);
  const headers = new Map(header.map(readField));
  const progress = new Progress(terminal, now);
  try {
    const logs = new LogFiles({
      files: files.map((name) => ({ name, input: name === STANDARD_INPUT ? process.stdin : name })),
      format: format ?? null,
      headers,
      onProgress: (read, total) => progress.at(read, total),
    });
    return { logs, trust, progress };
  } catch (error) {
    throw readable(error);
  }
}

/** Runs a function that reads logs, and turns its errors into one sentence. */
export async function readingLogs<T>(progress: Progress, read: () => Promise<T>): Promise<T> {
  try {
    return await read();
  } catch (error) {
    throw readable(error);
  } finally {
    progress.end();
  }
}

/** Turns the error of a log into one sentence. */
export function readable(error: unknown): unknown {
  if (error instanceof UnknownFormatError)
    return new CommandError(
      `${error.message}; name its format with --format ${FORMATS.join('|')}`,
      EXIT.usage,
    );
  const { code, path, syscall } = error as NodeJS.ErrnoException;
  if (typeof code !== 'string' || typeof syscall !== 'string') return error;
  const what = whyUnreadable(code, 'name an existing log');
  return new CommandError(`${path ?? 'the log'} ${what}`, EXIT.unreachable);
}

function readTrust(text: string): ProxyTrust {
  try {
    return parseTrustedProxies(text);
  } catch (error) {
    throw new CommandError(`--trusted-proxies: ${(error as Error).message}`, EXIT.usage);
  }
}

function readField(text: string): [header: string, field: string] {
  const [, header, field] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)=(\S+)$/.exec(text) ?? [];
  if (header === undefined || field === undefined)
    throw new CommandError(
      `--header "${text}" is not NAME=FIELD; write it such as --header x-api-key=api_key`,
      EXIT.usage,
    );
  return [header.toLowerCase(), field];
}
