/** `forecast`: estimates the memory and the commands for a number of clients. */

import { loadPolicyFile, requireWhole } from '#gateway/cli/command/arguments.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import { type Forecast, forecast } from '#gateway/workbench/forecast/forecast.ts';
import { count } from '#gateway/workbench/number-text.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

interface ForecastArguments {
  readonly identities: number;
  readonly rate: number | undefined;
  readonly processes: number;
  readonly file: string;
  readonly json: boolean;
}

const IDENTITIES_MAX = 1_000_000_000;
const PROCESSES_MAX = 10_000;

export const addForecast: AddCommand = (program, context) =>
  program.command(
    'forecast',
    'How much memory and how many Redis commands a second do these clients need?',
    (command) =>
      command
        .option('identities', { type: 'number', default: 20_000, describe: 'Clients in one window' })
        .option('rate', {
          type: 'number',
          describe: 'Requests per second of all clients; default: one a minute for each client',
        })
        .option('processes', { type: 'number', default: 1, describe: 'Processes of all gateways' })
        .option('file', { type: 'string', default: 'policies.yaml', describe: 'The policy file' })
        .example('$0 forecast --identities 100000 --rate 2000', 'Gives an upper bound for maxmemory'),
    (options) => context.run(() => run(options, context)),
  );

function run(options: ForecastArguments, { terminal }: CommandContext): ExitCode {
  const { identities, processes, file, json } = options;
  const rate = options.rate ?? identities / 60;
  requireWhole('--identities', identities, 1, IDENTITIES_MAX);
  if (!(rate >= 0 && rate <= IDENTITIES_MAX))
    throw new CommandError(`--rate must be a number from 0 to ${IDENTITIES_MAX}`, EXIT.usage);
  requireWhole('--processes', processes, 1, PROCESSES_MAX);
  const set = loadPolicyFile(file);
  const found = forecast(set, { identities, requestsPerSecond: rate, processes });
  if (json) terminal.json(found);
  else print(found, terminal);
  return EXIT.ok;
}

function print(found: Forecast, terminal: Terminal): void {
  const { identities, requestsPerSecond, processes, redisBytes, processBytes, commandsPerSecond, counters } =
    found;
  terminal.line(
    `${count(identities)} clients, ${count(Math.ceil(requestsPerSecond))} requests/s, ${count(processes)} ${processes === 1 ? 'process' : 'processes'}, at most:`,
  );
  terminal.line();
  terminal.table(
    ['what', 'how much'],
    [
      ['memory of Redis', megabytes(redisBytes)],
      ['memory of the gateway', megabytes(processBytes)],
      ['commands of Redis', `${count(commandsPerSecond)}/s`],
    ],
  );
  terminal.line();
  terminal.table(
    ['in Redis', 'keys', 'memory'],
    counters.map(({ policy, unproven, keys, bytes }) => [
      policy === null ? 'proven keys' : unproven ? `${policy}, for unproven keys` : policy,
      keys,
      megabytes(bytes),
    ]),
  );
}

function megabytes(bytes: number): string {
  return `${(bytes / 1e6).toLocaleString('en', { maximumFractionDigits: 1, minimumFractionDigits: 1 })} MB`;
}
