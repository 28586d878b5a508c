/** `prove`: does a running gateway admit exactly what its policies say? */
import { createInterface } from 'node:readline/promises';
import type { AddCommand, CommandContext } from '#gateway/cli/command/command.ts';
import { readPolicyText } from '#gateway/cli/command/policy-text.ts';
import { isAdminListener, publicOrigin } from '#gateway/cli/command/public-address.ts';
import { readHeaders } from '#gateway/cli/command/request-options.ts';
import { partsOf } from '#gateway/identity/identifier.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import type { Policy, PolicySet } from '#gateway/policy/policy.ts';
import { type Proof, prove, REQUESTS_PER_SECOND } from '#gateway/workbench/prove/prove-policy.ts';
import { type SampleRequest, sampleRequest } from '#gateway/workbench/rehearsal/sample-request.ts';
import { CommandError, EXIT, type ExitCode } from '#shared/cli/exit.ts';

const SAFE = ['HEAD', 'GET'] as const;
const ALL = [...SAFE, 'POST', 'PUT', 'PATCH', 'DELETE'] as const;

/** Requests a second that come back to a token bucket: a quarter of what is sent. */
const REFILL_MAX = REQUESTS_PER_SECOND / 4;
/** Connections of one client, of which each has a request in flight. */
const IN_FLIGHT_MAX = 100;

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

interface Skipped {
  readonly policy: string;
  readonly reason: string;
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
        .option('file', { type: 'string', default: 'policies.yaml', describe: 'Its policy file' })
        .option('header', {
          alias: 'H',
          type: 'string',
          array: true,
          nargs: 1,
          default: [] as string[],
          describe: 'Further header field of every request',
        })
        .option('all-methods', {
          type: 'boolean',
          default: false,
          describe: 'Send POST, PUT, PATCH and DELETE too; they may change data',
        })
        .option('yes', { alias: 'y', type: 'boolean', default: false, describe: 'Do not ask' })
        .option('wait', {
          type: 'number',
          default: 90,
          describe: 'Seconds to wait for a fresh window at most',
        })
        .option('limit-max', {
          type: 'number',
          default: 10_000,
          describe: 'Leave out policies with a larger limit',
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
  const url = publicOrigin(options.public);
  const { origin } = url;
  const headers = readHeaders(options.header);
  const set = loadPolicies(readPolicyText(file), file);
  const { planned, skipped } = plan(set, options);
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

interface Planned {
  readonly policy: Policy;
  readonly request: SampleRequest;
}

function plan(
  set: PolicySet,
  { allMethods, limitMax }: ProveOptions,
): { readonly planned: readonly Planned[]; readonly skipped: readonly Skipped[] } {
  const planned: Planned[] = [];
  const skipped: Skipped[] = [];
  for (const policy of set.policies) {
    const request =
      policy.capacity > limitMax ? null : sampleRequest(set, policy, allMethods ? ALL : SAFE, 'prove');
    const reason = reasonToSkip(set, policy, request, limitMax, allMethods);
    if (reason !== null) skipped.push({ policy: policy.name, reason });
    else if (request !== null) planned.push({ policy, request });
  }
  return { planned, skipped };
}

function reasonToSkip(
  { policies }: PolicySet,
  policy: Policy,
  request: SampleRequest | null,
  limitMax: number,
  allMethods: boolean,
): string | null {
  const { mode, limit, capacity, algorithm, cost, count, bucketId, index } = policy;
  const { identifier, rollout, windowSeconds, route } = policy;
  const { methods } = route;
  if (mode === 'shadow') return 'it is in shadow mode and never denies';
  if (algorithm === 'token-bucket' && limit / windowSeconds > REFILL_MAX)
    return `it gets back ${Math.round(limit / windowSeconds)} a second, faster than it can be used up from here`;
  if (algorithm === 'concurrency' && limit > IN_FLIGHT_MAX)
    return `it lets ${limit} requests be in flight, and a gateway may refuse one client so many connections`;
  if (cost.kind !== 'units' || cost.units !== 1) return 'its requests cost more than one each';
  if (count !== 'request') return `it counts only each ${count}, which the application decides`;
  if (capacity > limitMax) return `its limit is above --limit-max ${limitMax}`;
  if (bucketId !== index) return `it shares the counter of ${policies[bucketId]?.name}`;
  if (rollout !== null) return `it counts ${rollout.percent}% of all clients only`;
  if (request !== null) return null;
  if (partsOf(identifier).some(({ kind }) => kind === 'token')) return 'it counts signed tokens';
  if (!allMethods && methods !== null && !methods.has('GET'))
    return 'its methods may change data; add --all-methods';
  return 'another policy denies all of its requests earlier';
}

/** What is sent at once must not be denied because it is sent at once. */
function inFlightMaxOf({ policies }: PolicySet): number {
  const limits = policies
    .filter(({ algorithm, mode }) => algorithm === 'concurrency' && mode === 'enforce')
    .map(({ limit }) => limit);
  return Math.min(...limits, Number.MAX_SAFE_INTEGER);
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
