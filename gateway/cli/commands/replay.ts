/** `replay LOG…`: decides the requests of a log by a policy file. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { loadPolicyFile } from '#gateway/cli/command/arguments.ts';
import { command, POLICY_FILE } from '#gateway/cli/command/command.ts';
import { LOG_OPTIONS, openLogs, readable } from '#gateway/cli/command/log-options.ts';
import { count, counted } from '#gateway/workbench/number-text.ts';
import { type ReplayResult, replay } from '#gateway/workbench/replay/replay.ts';
import { CommandError, EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';

export const REPLAY = command({
  describe: 'What would this policy file have allowed and denied of the requests in access logs?',
  options: {
    ...LOG_OPTIONS,
    file: { ...POLICY_FILE, describe: 'The policy file to try' },
    against: { describe: 'The policy file to compare with, such as the one in use' },
    routes: { isFlag: true, describe: 'Lists the busiest routes, and a limit that would fit each of them' },
  },
  examples: [
    ['$0 replay access.log', 'How many requests of whom would policies.yaml have denied?'],
    [
      '$0 replay access.log* --file edited.yaml --against policies.yaml',
      'Shows which clients an edit affects',
    ],
  ],
  async run(options, { terminal, now, env }) {
    const set = loadPolicyFile(options.file);
    const against = options.against === undefined ? null : loadPolicyFile(options.against);
    // With the salt of the gateway, digests are the same as in its logs.
    const salt = env.GATEWAY_IDENTITY_SECRET ?? '';
    const begunAt = now();
    const { 'trusted-proxies': trust, routes: withRoutes } = options;
    const result = await replay({ logs: openLogs(options), set, against, trust, salt, withRoutes }).catch(
      (error: unknown) => {
        throw readable(error);
      },
    );
    const seconds = Math.max(0.001, (now() - begunAt) / 1000);
    if (result.requests === 0) {
      const [first] = result.unreadableLines;
      throw new CommandError(
        first === undefined
          ? 'there is no request in these logs; name others, or their format with --format'
          : `there is no request in these logs; line ${first.line} of ${first.file} reads: ${first.text}`,
        EXIT.no,
      );
    }
    if (options.json) terminal.json(documentOf(result, Math.round(result.lines / seconds)));
    else print(result, terminal);
    return EXIT.ok;
  },
});

function documentOf(result: ReplayResult, linesPerSecond: number): object {
  const { comparison, routes, ...fields } = result;
  return { ...fields, ...comparison, ...(routes === null ? {} : { routes }), linesPerSecond };
}

function print(result: ReplayResult, terminal: Terminal): void {
  const { requests, allowed, denied, uncovered, malformed, banned, unknown, unreadable } = result;
  const parts = [
    `${count(allowed)} allowed`,
    terminal.style(denied > 0 ? 'red' : 'green', `${count(denied)} denied`),
  ];
  parts.push(`${count(uncovered)} without a policy`);
  if (malformed > 0) parts.push(`${count(malformed)} malformed`);
  if (banned > 0) parts.push(`${count(banned)} of banned clients`);
  if (unknown > 0) parts.push(`${count(unknown)} cannot be judged`);
  terminal.line(`${counted(requests, 'request')} from ${result.from} to ${result.to}: ${parts.join(', ')}`);
  terminal.line();
  terminal.table(
    ['policy', 'limit', 'window', 'allowed', 'denied', 'clients', 'denied clients', 'first denied'],
    result.policies.map((policy) => [
      policy.name,
      policy.limit,
      ALGORITHMS[policy.algorithm].span(policy.windowSeconds),
      policy.allowed,
      overText(policy),
      policy.identities,
      policy.identitiesDenied,
      policy.firstDeniedAt ?? '',
    ]),
  );
  printMostDenied(result, terminal);
  printComparison(result, terminal);
  printRoutes(result, terminal);
  if (result.notes.length > 0 || unreadable > 0) terminal.line();
  for (const note of result.notes) terminal.line(`Note: ${note}.`);
  if (unreadable > 0) {
    terminal.line(`Note: ${count(unreadable)} of ${count(result.lines)} lines could not be read:`);
    for (const { file, line, text } of result.unreadableLines) terminal.line(`  ${file}:${line}: ${text}`);
  }
}

/** @returns how many requests were over the limit, and what the policy did with them unless it denied them */
function overText({ mode, denied, shadowDenied, marked }: ReplayResult['policies'][number]): string | number {
  if (mode === 'mark') return `${count(marked)} (mark)`;
  return mode === 'shadow' ? `${count(shadowDenied)} (shadow)` : denied;
}

function printMostDenied({ policies }: ReplayResult, terminal: Terminal): void {
  const rows = policies.flatMap(({ name, mostDenied }) =>
    mostDenied.map(({ identity, count: times }) => [name, identity, times] as const),
  );
  if (rows.length === 0) return;
  terminal.line();
  terminal.table(['policy', 'most denied', 'times'], rows);
}

function printComparison({ file, comparison }: ReplayResult, terminal: Terminal): void {
  if (comparison === null) return;
  const { against, newlyDenied, newlyAllowed, identitiesNewlyDenied, mostNewlyDenied } = comparison;
  terminal.line();
  terminal.line(
    `Compared with ${against}, ${file} denies ${counted(newlyDenied, 'request')} of ${counted(identitiesNewlyDenied, 'client')} more, and allows ${count(newlyAllowed)} that ${against} denies.`,
  );
  if (mostNewlyDenied.length === 0) return;
  terminal.line();
  terminal.table(
    ['newly denied', 'times'],
    mostNewlyDenied.map(({ identity, count: times }) => [identity, times]),
  );
}

function printRoutes({ routes }: ReplayResult, terminal: Terminal): void {
  if (routes === null) return;
  terminal.line();
  terminal.line('Requests of one client in one minute:');
  terminal.table(
    ['route', 'by', 'requests', 'clients', 'p50', 'p95', 'p99', 'max', 'limit'],
    routes.map(({ route, identifier, requests, identities, p50, p95, p99, max, limit }) => [
      route,
      identifier,
      requests,
      identities,
      p50,
      p95,
      p99,
      max,
      limit,
    ]),
  );
  terminal.line('A limit of this height would have denied no more than one client in a thousand.');
}
