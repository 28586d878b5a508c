/** Tests rollouts: the share of clients is stable, has the right size, and differs between policies. */
import { hash } from 'node:crypto';
import t from 'tap';
import { type DigestWords, identityOf } from '#gateway/identity/digest.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { isRolledOut, rolloutOf } from '#gateway/policy/policy.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';

const CLIENTS: readonly DigestWords[] = Array.from(
  { length: 20_000 },
  (_, i) => identityOf(hash('sha256', String(i), 'base64url').slice(0, 22)).words,
);
const inside = (percent: number, bucket = 'a'): ReadonlySet<DigestWords> =>
  new Set(CLIENTS.filter((words) => isRolledOut(rolloutOf(percent, bucket), words)));

t.test('covers the given part of clients, and keeps them while the part grows', async (t) => {
  t.equal(inside(0).size, 0);
  t.equal(inside(100).size, CLIENTS.length);
  let before = inside(0);
  for (const percent of [0.5, 1, 10, 25, 50, 90, 99.5, 100]) {
    const now = inside(percent);
    // With 20,000 clients, chance explains a tenth of this difference.
    t.ok(Math.abs(now.size - (CLIENTS.length * percent) / 100) < 710, `${now.size} of ${percent}%`);
    t.ok(before.isSubsetOf(now), 'every client stays covered');
    before = now;
  }
});

t.test('another policy begins with other clients', async (t) => {
  const both = inside(10, 'a').intersection(inside(10, 'b')).size;
  t.ok(both > 100 && both < 300, `${both} of about 200`);
});

const file = (rollout: string, more = ''): string => `version: 1
identifiers:
  ip: { source: client-address }
policies:
  - { name: new, route: "GET /a", identifier: ip, limit: 1, window: 1m, rollout: ${rollout}, bucket: b }
  - { name: old, route: "GET /*", identifier: ip, limit: 5, window: 1m }
${more}`;

t.test('accepts a number or a percent sign', async (t) => {
  const percent = (text: string) => loadPolicies(file(text), 'p.yaml').policies[0]?.rollout?.percent;
  for (const [text, value] of [
    ['10%', 10],
    ['10', 10],
    ['"0.5%"', 0.5],
    ['0.5', 0.5],
    ['0', 0],
    ['99.9%', 99.9],
  ] as const)
    t.equal(percent(text), value, text);
  t.equal(percent('100%'), undefined, '100% is no rollout');
  for (const text of ['101%', '-1', '100.5', 'half', '10 %', '.5%'])
    t.throws(
      () => loadPolicies(file(text), 'p.yaml'),
      { message: /rollout is .*; expected: a percentage/ },
      text,
    );
  const shared =
    '  - { name: other, route: GET /b, identifier: ip, limit: 1, window: 1m, rollout: 20%, bucket: b }\n';
  t.throws(() => loadPolicies(file('10%', shared), 'p.yaml'), { message: /which has a different rollout/ });
});

t.test('a client outside the rollout is not counted and gets no headers', async (t) => {
  const tests = `tests:
  - { name: in, request: GET /a, from: 192.0.2.IN, times: 9, expect: { allowed: 1, policies: [new, old] } }
  - { name: out, request: GET /a, from: 192.0.2.OUT, times: 9, expect: { allowed: 5, policies: [old], headers: { ratelimit-policy: '"old";q=5;w=60' } } }
`;
  // Without a salt, digests alone decide which addresses are in the rollout.
  const passes = (i: number, o: number): boolean =>
    runTests(loadPolicies(file('50%', tests.replace('IN', String(i)).replace('OUT', String(o))), 'p.yaml'))
      .length === 0;
  const pairs = Array.from({ length: 12 }, (_, i) => [i + 1, ((i + 1) % 12) + 1] as const);
  t.ok(pairs.some(([i, o]) => passes(i, o)));
});
