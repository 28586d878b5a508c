/** `prove`: tests whether a running gateway admits exactly its limits. */
import { createInterface } from 'node:readline/promises';
import { HEADER_OPTION, loadPolicyFile, readHeaders } from '#gateway/cli/command/arguments.ts';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import { isAdminListener, originIn } from '#gateway/cli/command/public-address.ts';
import { inFlightMaxOf, type Planned, planProof } from '#gateway/workbench/prove/plan.ts';
import { type Proof, prove } from '#gateway/workbench/prove/prove-policy.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';

interface ProveOptions {
  readonly public: string;
  readonly gateway: string | undefined;
  readonly file: string;
  readonly header: readonly string[];
  readonly allMethods: boolean;
  readonly yes: boolean;
  readonly wait: number;
  readonly limitMax: number;
  readonly json: boolean;
}

export const addProve: AddCommand = (program, context) =>
  program.command(
    'prove',
    'Does a running gateway admit exactly its limits?',
    (command) =>
      command
        .option('public', {
          type: 'string',
          default: 'http://127.0.0.1:8080',
          describe: 'Where clients reach the gateway',
        })
        .option('gateway', { type: 'string', hidden: true })
        .option('file', { type: 'string', default: 'policies.yaml', describe: 'Policy file of the gateway' })
        .option('header', { ...HEADER_OPTION, describe: 'Further header field of every request' })
        .option('all-methods', {
          type: 'boolean',
          default: false,
          describe: 'Send POST, PUT, PATCH and DELETE too; they may change data',
        })
        .option('yes', {
          alias: 'y',
          type: 'boolean',
          default: false,
          describe: 'Do not ask for confirmation',
        })
        .option('wait', {
          type: 'number',
          default: 90,
          describe: 'Maximum number of seconds to wait for a new window',
        })
        .option('limit-max', {
          type: 'number',
          default: 10_000,
          describe: 'Skip policies with a larger limit',
        })
        .example('$0 prove --yes', 'Sends more requests than each limit allows and counts what is admitted'),
    (options) => context.run(() => proveAll(options, context)),
  );

async function proveAll(options: ProveOptions, { terminal, now }: CommandContext): Promise<ExitCode> {
  const { file, json } = options;
  if (options.gateway !== undefined)
    throw new CommandError(
      '--gateway is the admin listener, and prove makes requests of clients: write --public URL',
      EXIT.usage,
    );
  const url = originIn('public', options.public);
  const { origin } = url;
  const headers = readHeaders(options.header);
  const set = loadPolicyFile(file);
  const { planned, skipped } = planProof(set, options);
  const inFlightMax = inFlightMaxOf(set);
  await confirm(planned, origin, options.yes, terminal.isInteractive);
  if (await isAdminListener(url))
    throw new CommandError(
      `${origin} is the admin listener; give --public the address that clients use (GATEWAY_PORT)`,
      EXIT.usage,
    );
  const rows: Proof[] = [];
  for (const { policy, request } of planned) {
    if (terminal.isInteractive) terminal.error(`${policy.name} …`);
    rows.push(
      await prove(policy, request, { origin, headers, waitSecondsMax: options.wait, inFlightMax, now }),
    );
  }
  if (json) terminal.json({ rows, skipped });
  else {
    terminal.table(
      ['policy', 'sent', 'admitted', 'limit', 'exact'],
      rows.map(({ policy, sent, admitted, limit, refilled, exact, note }) => [
        policy,
        sent,
        admitted,
        refilled === 0 ? limit : `${limit} and ${refilled} refilled`,
        exact ? 'yes' : `no: ${note}`,
      ]),
    );
    for (const { policy, reason } of skipped) terminal.line(`not tried: ${policy}, ${reason}`);
  }
  return rows.every(({ exact }) => exact) ? EXIT.ok : EXIT.no;
}

async function confirm(
  planned: readonly Planned[],
  origin: string,
  yes: boolean,
  isInteractive: boolean,
): Promise<void> {
  if (yes || planned.length === 0) return;
  const requests = planned.reduce((sum, { policy }) => sum + policy.capacity, 0);
  const what = `about ${requests} real requests to ${origin}; all that are admitted reach the application`;
  if (!isInteractive) throw new CommandError(`this sends ${what}; add --yes`, EXIT.usage);
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  const answer = await reader.question(`This sends ${what}. Go on? [y/N] `);
  reader.close();
  if (!/^y(?:es)?$/i.test(answer.trim())) throw new CommandError('nothing was sent', EXIT.usage);
}
