/** Opens the access logs that the arguments name. */
import { FORMATS } from '#gateway/workbench/replay/formats/formats.ts';
import { LOGS_MAX, LogFiles, UnknownFormatError } from '#gateway/workbench/replay/log-files.ts';
import type { Given } from '#shared/cli/command.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { whyUnreadable } from './arguments.ts';
import { HEADER } from './command.ts';

/** The name of standard input among files. */
const STANDARD_INPUT = '-';

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

/** @throws CommandError exit 2 for too many logs */
export function openLogs({ logs, format, header }: Given<typeof LOG_OPTIONS>): LogFiles {
  if (logs.length > LOGS_MAX)
    throw new CommandError(
      `${logs.length} logs are more than ${LOGS_MAX}; join some of them, such as: cat a.log b.log | floodgate replay -`,
      EXIT.usage,
    );
  if (logs.filter((name) => name === STANDARD_INPUT).length > 1)
    throw new CommandError('standard input (-) can be read only once', EXIT.usage);
  const files = logs.map((name) =>
    name === STANDARD_INPUT ? { name: 'standard input', input: process.stdin } : { name, input: name },
  );
  return new LogFiles(files, format ?? null, new Map(header));
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
