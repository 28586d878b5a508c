/** `suggest LOG…`: proposes limits for the traffic of the logs. */

import { requireWhole } from '#gateway/cli/command/arguments.ts';
import { type AddCommand, type CommandContext, readSeconds } from '#gateway/cli/command/command.ts';
import {
  LOG_OPTIONS,
  LOGS,
  type LogOptions,
  openLogs,
  readingLogs,
} from '#gateway/cli/command/log-options.ts';
import { count } from '#gateway/workbench/number-text.ts';
import { policyText } from '#gateway/workbench/suggest/policy-text.ts';
import { Suggest, type Suggestions } from '#gateway/workbench/suggest/suggest.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

interface SuggestOptions extends LogOptions {
  readonly window: string;
  readonly key: string;
  readonly routes: number;
  readonly json: boolean;
}

const WINDOW_SECONDS_MAX = 366 * 86_400;
const ROUTES_MAX = 1000;

export const addSuggest: AddCommand = (program, context) =>
  program.command(
    'suggest <logs..>',
    'What limits would fit the requests in access logs? Prints a policy file to start from',
    (command) =>
      command
        .positional('logs', LOGS)
        .option('window', {
          type: 'string',
          default: '1m',
          describe: 'Window of the limits: 30s, 1m, 12h, 7d',
        })
        .option('key', {
          type: 'string',
          default: 'x-api-key',
          describe: 'The header field that presents an API key, where the log has it',
        })
        .option('routes', { type: 'number', default: 50, describe: 'Number of routes, the busiest first' })
        .options(LOG_OPTIONS)
        .example('$0 suggest access.log > policies.yaml', 'Writes limits that fit what clients really do'),
    (options) => context.run(() => run(options, context)),
  );

async function run(options: SuggestOptions, { terminal, now }: CommandContext): Promise<ExitCode> {
  const windowSeconds = readWindow(options.window);
  const keyHeader = options.key.toLowerCase();
  if (!/^[a-z0-9!#$%&'*+.^_`|~-]+$/.test(keyHeader))
    throw new CommandError(
      `--key ${options.key} is not the name of a header field; write one such as x-api-key`,
      EXIT.usage,
    );
  const routesMax = options.routes;
  requireWhole('--routes', routesMax, 1, ROUTES_MAX);
  const { logs, trust, progress } = openLogs(options, terminal, now);
  const suggestions = await readingLogs(progress, () =>
    new Suggest({ logs, trust, windowSeconds, keyHeader, routesMax }).run(),
  );
  const { lines, unreadable } = logs.counts;
  if (suggestions.routes.length === 0)
    throw new CommandError(
      'these logs have no request with a client; name other logs, or their format with --format',
      EXIT.no,
    );
  const policies = policyText(suggestions, keyHeader);
  if (options.json) {
    terminal.json({ lines, unreadable, ...suggestions, policies });
    return EXIT.ok;
  }
  print(suggestions, unreadable, terminal);
  terminal.line(policies.trimEnd());
  return EXIT.ok;
}

/** Prints comments, so that the whole output is a policy file. */
function print(
  { routes, others, oneIn, unknown }: Suggestions,
  unreadable: number,
  terminal: Terminal,
): void {
  const comment = terminal.commented();
  comment.table(
    ['route', 'by', 'requests', 'clients', 'p50', 'p95', 'p99', 'max', 'limit: clients denied'],
    routes.map((route) => [
      route.route,
      route.identifier,
      route.requests,
      route.identities,
      route.p50,
      route.p95,
      route.p99,
      route.max,
      route.candidates.map(({ limit, identitiesDenied }) => `${limit}: ${identitiesDenied}`).join(', '),
    ]),
  );
  if (others > 0) comment.line(`${count(others)} requests on other routes`);
  if (unknown > 0) comment.line(`${count(unknown)} requests whose client is not in the log`);
  if (unreadable > 0) comment.line(`${count(unreadable)} lines could not be read`);
  if (oneIn > 1) comment.line(`one client in ${oneIn} was followed; numbers of clients are estimates`);
  comment.line();
}

function readWindow(text: string): number {
  const seconds = readSeconds(text);
  if (seconds === null || seconds > WINDOW_SECONDS_MAX)
    throw new CommandError(
      `--window ${text} is not a window; write one such as 30s, 1m, 12h or 7d`,
      EXIT.usage,
    );
  return seconds;
}
