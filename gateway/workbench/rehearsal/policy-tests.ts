/** Runs the tests of a policy file, each with its own counters in memory. */

import type { Priority } from '#gateway/bounds/priority.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import type { PolicySet, PolicyTest } from '#gateway/policy/policy-set.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import type { ReadReferenced } from '#gateway/policy/referenced-files.ts';
import { Rehearsal } from './rehearsal.ts';
import type { Rehearsed } from './rehearsed.ts';

interface TestFailure {
  readonly name: string;
  /** Line in the file, from 1. */
  readonly line: number;
  readonly message: string;
}

export function runTests(set: PolicySet): TestFailure[] {
  return set.tests.flatMap((test) => {
    const messages = runTest(set, test);
    return messages.length === 0 ? [] : [{ name: test.name, line: test.line, message: messages.join('; ') }];
  });
}

/**
 * Loads a policy file and runs its tests.
 *
 * @throws PolicyFileError with every mistake, or with every test that fails
 */
export function loadTestedPolicies(text: string, file: string, readReferenced?: ReadReferenced): PolicySet {
  const set = loadPolicies(text, file, readReferenced);
  const failures = runTests(set);
  if (failures.length === 0) return set;
  throw new PolicyFileError(
    file,
    failures.map(({ name, line, message }) => ({
      line,
      column: 1,
      message: `test "${name}" fails: ${message}`,
      fix: 'correct the policies, or what the test expects',
    })),
  );
}

function runTest(set: PolicySet, test: PolicyTest): string[] {
  const rehearsal = new Rehearsal(set, { clock: () => test.at });
  const { method, target, rawHeaders, body, plan } = test;
  const sockets = test.from.map((remoteAddress) => ({ remoteAddress }));
  const ask = (i: number): Rehearsed => {
    const socket = sockets[i % sockets.length] ?? {};
    return rehearsal.ask({ method, target, rawHeaders, body, socket, plan: plan ?? undefined });
  };
  let allowed = 0;
  let last = ask(0);
  for (let i = 1; ; i++) {
    if (last.kind === 'allow' || last.kind === 'uncovered') allowed++;
    if (last.kind === 'allow') rehearsal.answered(last, test.reply, test.replyHeaders);
    if (i === test.times) break;
    last = ask(i);
  }
  return differences(test, allowed, last, rehearsal.priorityOf(test));
}

function differences(
  { expect, times, reply }: PolicyTest,
  allowed: number,
  last: Rehearsed,
  priority: Priority | null,
): string[] {
  const messages: string[] = [];
  const say = (what: string, expected: unknown, got: unknown): void => {
    messages.push(`${what}: expected ${expected}, got ${got}`);
  };
  if (expect.allowed !== null && expect.allowed !== allowed)
    say('allowed', expect.allowed, `${allowed} of ${times}`);
  const status = statusOf(last, reply);
  if (expect.status !== null && expect.status !== status) say('status', expect.status, status);
  if (expect.priority !== null && expect.priority !== priority)
    say('priority', expect.priority, priority ?? 'none');
  if (expect.policies !== null) {
    const applied = policiesOf(last);
    const expected = [...expect.policies].sort().join(', ') || 'none';
    const got = applied.sort().join(', ') || 'none';
    if (expected !== got) say('policies', expected, got);
  }
  const headers = headersOf(last);
  for (const [name, value] of expect.headers) {
    const got = headers.get(name);
    if (got !== value) say(`header ${name}`, value, got ?? 'none');
  }
  return messages;
}

function statusOf(last: Rehearsed, reply: number): number {
  switch (last.kind) {
    case 'malformed':
    case 'listed':
      return last.status;
    case 'deny':
      return 429;
    case 'allow':
    case 'uncovered':
      return reply;
    default:
      return last satisfies never;
  }
}

function policiesOf(last: Rehearsed): string[] {
  if (last.kind !== 'allow' && last.kind !== 'deny') return [];
  return [...new Set(last.policies.map(({ name }) => name))];
}

function headersOf(last: Rehearsed): ReadonlyMap<string, string> {
  const headers = new Map<string, string>();
  if (last.kind === 'malformed' || last.kind === 'uncovered') return headers;
  for (let i = 0; i < last.headers.length; i += 2)
    headers.set((last.headers[i] ?? '').toLowerCase(), last.headers[i + 1] ?? '');
  return headers;
}
