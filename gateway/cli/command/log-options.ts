/** Opens the access logs that the arguments name. */

import { FORMATS } from '#gateway/workbench/replay/formats/formats.ts';
import { UnknownFormatError } from '#gateway/workbench/replay/log-file.ts';
import { LOGS_MAX, LogFiles } from '#gateway/workbench/replay/log-files.ts';
import type { Given } from '#shared/cli/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { whyUnreadable } from './arguments.ts';
import { HEADER, STANDARD_INPUT } from './command.ts';
import { Progress } from './progress.ts';

/** Options of every command that reads access logs. */
export const LOG_OPTIONS = {
  logs: {
    isPositional: true,
    isList: true,
    isRequired: true,
    describe: 'Access logs, also compressed with gzip; - for standard input',
  },
  format: { choices: FORMATS, describe: 'Format of the logs; detected from their first lines by default' },
  'trusted-proxies': {
    default: 'none',
    parse: parseTrustedProxies,
    describe: 'As GATEWAY_TRUSTED_PROXIES: whose X-Forwarded-For counts, where the log has it',
  },
  header: {
    ...HEADER,
    parse: readField,
    describe: "'NAME=FIELD': the field of an Envoy log that has this header field",
  },
} as const;

interface OpenedLogs {
  readonly logs: LogFiles;
  readonly trust: ProxyTrust;
  readonly progress: Progress;
}

/** @throws CommandError exit 2 for too many logs, exit 3 for a missing file */
export function openLogs(
  options: Given<typeof LOG_OPTIONS>,
  terminal: Terminal,
  now: () => number,
): OpenedLogs {
  const { logs: files, format = null, 'trusted-proxies': trust, header } = options;
  if (files.length > LOGS_MAX)
    throw new CommandError(
      `${files.length} logs are more than ${LOGS_MAX}; join some of them, such as: cat a.log b.log | floodgate replay -`,
      EXIT.usage,
    );
  if (files.filter((name) => name === STANDARD_INPUT).length > 1)
    throw new CommandError('standard input (-) can be read only once', EXIT.usage);
  const progress = new Progress(terminal, now);
  try {
    const logs = new LogFiles({
      files: files.map((name) =>
        name === STANDARD_INPUT ? { name: 'standard input', input: process.stdin } : { name, input: name },
      ),
      format,
      headers: new Map(header),
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

function readField(text: string): [header: string, field: string] {
  const [, header, field] = /^([A-Za-z0-9!#$%&'*+.^_`|~-]+)=(\S+)$/.exec(text) ?? [];
  if (header === undefined || field === undefined)
    throw new Error(`"${text}" is not NAME=FIELD; write it such as --header x-api-key=api_key`);
  return [header.toLowerCase(), field];
}
