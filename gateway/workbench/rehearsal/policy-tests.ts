/** Runs the tests of a policy file, each with its own counters in memory. */

import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import type { PolicySet, PolicyTest } from '#gateway/policy/policy-set.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import type { ReadReferenced } from '#gateway/policy/referenced-files.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
import { Rehearsal } from './rehearsal.ts';
import { type Asking, applyingOf, priorityOf, type Rehearsed, replyTo } from './rehearsed.ts';

/** @returns the tests that fail, with their lines in the file, from 1 */
export function runTests(set: PolicySet) {
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
  const { method, target, rawHeaders, bodies, plan, isRegular } = test;
  const sockets = test.from.map((remoteAddress) => ({ remoteAddress }));
  const ask = (i: number): Rehearsed => {
    const socket = sockets[i % sockets.length] ?? {};
    const body = bodies[i % bodies.length];
    const request = { method, target, rawHeaders, body, socket, plan: plan ?? undefined };
    if (isRegular) rehearsal.welcome(request);
    return rehearsal.ask(request);
  };
  let allowed = 0;
  let last = ask(0);
  for (let i = 1; ; i++) {
    if (last.kind === 'allow' || last.kind === 'uncovered') allowed++;
    if (last.kind === 'allow') rehearsal.answered(last, test.reply, test.replyHeaders, test.replyBytes);
    else if (last.kind === 'uncovered') rehearsal.learn(last, test.reply);
    if (i === test.times) break;
    last = ask(i);
  }
  return differences(test, allowed, last, rehearsal.askingOf(test));
}

function differences(
  { at, expect, times, reply }: PolicyTest,
  allowed: number,
  last: Rehearsed,
  asking: Asking,
): string[] {
  const own = replyTo(last, at, asking);
  const status = own.status ?? reply;
  const marks = last.kind === 'allow' ? last.decision.marks : [];
  const headers = new Map(
    Object.entries(recordOf(own.headers)).map(([name, value]) => [name.toLowerCase(), value]),
  );
  type Compared = readonly [what: string, expected: string | number | null, got: string | number];
  const compared: readonly Compared[] = [
    ['allowed', expect.allowed, allowed],
    ['status', expect.status, status],
    ['priority', expect.priority, priorityOf(last) ?? 'none'],
    ['policies', listOf(expect.policies), namesOf(applyingOf(last))],
    ['marked', listOf(expect.marked), namesOf(marks)],
    ...[...expect.headers].map(
      ([name, value]): Compared => [`header ${name}`, value, headers.get(name) ?? 'none'],
    ),
  ];
  return compared
    .filter(([, expected, got]) => expected !== null && expected !== got)
    .map(([what, expected, got]) => {
      const of = what === 'allowed' ? ` of ${times}` : '';
      return `${what}: expected ${expected}, got ${got}${of}`;
    });
}

function listOf(names: readonly string[] | null): string | null {
  return names === null ? null : [...names].sort().join(', ') || 'none';
}

/** Names policies once each. A share of a limit belongs to its policy. */
function namesOf(policies: readonly Policy[]): string {
  const whole = policies.filter(({ shareOf }) => shareOf === null);
  return listOf([...new Set(whole.map(({ name }) => name))]) ?? '';
}
