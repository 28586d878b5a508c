/** `explain 'METHOD PATH'`: shows what the gateway would do with a request, and why. */

import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { accessOf, askAdmin } from '#gateway/cli/command/admin-client.ts';
import { loadPolicyFile, readRequest } from '#gateway/cli/command/arguments.ts';
import { ADMIN_OPTIONS, command, HEADER } from '#gateway/cli/command/command.ts';
import { type Explanation, explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal, type RehearsedRequest } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { EXIT } from '#shared/cli/exit.ts';
import type { Terminal } from '#shared/cli/terminal.ts';
import type { Clock } from '#shared/clock.ts';

export const EXPLAIN = command({
  describe: 'What would the gateway do with this request, and why?',
  options: {
    request: { isPositional: true, isRequired: true, describe: "'METHOD PATH'" },
    header: { ...HEADER, describe: "'name: value'" },
    data: { short: 'd', default: '', describe: 'Body of the request, JSON or a form' },
    plan: { describe: 'Plan of the client, as a trusted proxy would name it' },
    from: { default: '127.0.0.1', describe: 'Address of the client' },
    file: { describe: 'A policy file to use instead of the running gateway' },
    ...ADMIN_OPTIONS,
  },
  examples: [
    [
      "$0 explain 'POST /api/v1/management/storage' -H 'x-api-key: fbk_1'",
      'Shows for every policy whether it applies, and why not; uses the running gateway, charges nothing',
    ],
    ["$0 explain 'POST /login' --file new.yaml", 'Uses a file instead, with empty counters'],
  ],
  async run(options, { terminal, env, now }) {
    const { header, from, data: body, plan, file } = options;
    const request = { ...readRequest(options.request, header, from), body, plan };
    const explanation =
      file === undefined
        ? ((await askAdmin(accessOf(options, env), 'POST', '/api/explain', {
            request: options.request,
            headers: header,
            from,
            ...(body === '' ? {} : { body }),
            ...(plan === undefined ? {} : { plan }),
          })) as Explanation)
        : explainFile(file, request, now);
    if (options.json) terminal.json(explanation);
    else print(explanation, terminal);
    return explanation.decision === 'deny' || explanation.decision === 'malformed' ? EXIT.no : EXIT.ok;
  },
});

function explainFile(file: string, request: RehearsedRequest, clock: Clock): Explanation {
  const set = loadPolicyFile(file);
  return explain(set, new Rehearsal(set, { clock }), request);
}

function print(explanation: Explanation, terminal: Terminal): void {
  const { decision, path, readings, status, headers, reason, priority, policies } = explanation;
  const colour = decision === 'deny' || decision === 'malformed' ? 'red' : 'green';
  terminal.line(
    `${terminal.style(colour, decision)} ${path}${status === null ? '' : `: ${status}`}${reason === null ? '' : `, ${reason}`}`,
  );
  const [, ...others] = readings;
  if (others.length > 0) {
    terminal.line('Servers read this path in several ways, and each of them is matched:');
    for (const other of others) terminal.line(`  ${other}`);
  }
  if (priority !== null) terminal.line(`priority ${priority} while the application is overloaded`);
  const applying = policies.filter(({ matched }) => matched);
  if (applying.length > 0) {
    terminal.line();
    terminal.table(
      ['policy', 'line', 'used', 'limit', 'window', 'identity', 'why'],
      applying.map((policy) => [
        policy.name,
        policy.line,
        policy.used ?? 0,
        policy.limit,
        ALGORITHMS[policy.algorithm].span(policy.windowSeconds),
        policy.identity ?? '',
        policy.reason,
      ]),
    );
  }
  const idle = policies.filter(({ matched }) => !matched);
  if (idle.length > 0) {
    terminal.line();
    terminal.table(
      ['does not apply', 'line', 'why'],
      idle.map(({ name, line, reason }) => [name, line, reason]),
    );
  }
  const fields = Object.entries(headers);
  if (fields.length > 0) terminal.line();
  for (const [name, value] of fields) terminal.line(`${terminal.style('dim', `${name}:`)} ${value}`);
}
