/** A policy whose value is not in the log is skipped for the request, which is then incomplete, and a note says so. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import type { ReadReferenced } from '#gateway/policy/referenced-files.ts';
import type { LoggedDigests, LoggedSender } from '#gateway/workbench/replay/formats/logged-request.ts';
import { Judge } from '#gateway/workbench/replay/judge.ts';
import { notesOf } from '#gateway/workbench/replay/notes.ts';
import { Tally } from '#gateway/workbench/replay/tally.ts';
import { policyFile } from '#test/support/gateway.ts';

const digest = (name: string): string => name.padEnd(22, 'A');

/** Judges requests `METHOD TARGET` at one time. */
function judging(text: string, readReferenced?: ReadReferenced) {
  const set = loadPolicies(text, 'p.yaml', readReferenced);
  const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
  const tally = new Tally(set);
  const decide = (asked: string, from: { digests: LoggedDigests | null; sender: LoggedSender | null }) => {
    const [method = '', target = ''] = asked.split(' ');
    const judged = judge.judge({ at: 0, method, target, status: 200, bytes: 2, ...from });
    tally.add(judged, 0);
    return [judged.weighed.kind, ...judged.unknown.map(({ name }) => name)].join(' ');
  };
  return {
    /** Judges a line of another program. */
    other(asked: string, more: Partial<LoggedSender> = {}) {
      const [peer, client] = ['192.0.2.1', '192.0.2.1'];
      const sender = {
        peer,
        client,
        forwardedFor: '',
        headers: [],
        holds: () => true,
        ...more,
      };
      return decide(asked, { digests: null, sender });
    },
    /** Judges a line of the gateway's own log. */
    own(asked: string, more: Partial<LoggedDigests> = {}) {
      const digests = {
        ...{ decision: 'allow' as const, identities: new Map(), address: digest('address'), unproven: [] },
        ...{ proves: false, plan: null, policies: ['pages'], ...more },
      };
      return decide(asked, { digests, sender: null });
    },
    notes: (hasDigests: boolean) =>
      notesOf({
        set,
        results: tally.results,
        hasDigests,
        judge,
        logs: { late: 0, cutShort: [] },
        chained: 0,
      }),
  };
}

t.test('a field of the body is unknown, because logs do not have it', async (t) => {
  const { other } = judging(
    policyFile(
      'name: account, route: POST /login, identifier: { body: email, required: true }, limit: 1, window: 1h',
      'name: address, route: POST /login, identifier: ip, limit: 5, window: 1h',
    ),
  );
  for (let i = 0; i < 2; i++) t.equal(other('POST /login'), 'allow account');
});

t.test('different values: paths and queries are in a log, bodies are not', async (t) => {
  const file = policyFile(
    'name: pages, route: "GET /p/{id}", identifier: ip, distinct: path, limit: 2, window: 1h',
    'name: numbers, route: "GET /p/{id}", identifier: ip, distinct: path.id, limit: 9, window: 1h',
    'name: searches, route: GET /search, identifier: ip, distinct: { query: q }, limit: 2, window: 1h',
    'name: accounts, route: POST /login, identifier: ip, distinct: { body: email }, limit: 2, window: 1h',
  );
  const skipped = (name: string, requests: number): string =>
    `policies by ip and different ${name} were skipped for ${requests} requests, because the log does not have it`;
  for (const kind of ['own', 'other'] as const) {
    const log = judging(file);
    const all = (...asked: readonly string[]) => asked.map((one) => log[kind](one));
    t.strictSame(all('GET /p/1', 'GET /p/2', 'GET /p/1', 'GET /p/3'), ['allow', 'allow', 'allow', 'deny']);
    t.strictSame(
      all('GET /search?q=1', 'GET /search?q=2', 'GET /search?q=3'),
      kind === 'own' ? Array(3).fill('uncovered searches') : ['allow', 'allow', 'deny'],
    );
    t.strictSame(all('POST /login', 'POST /login'), Array(2).fill('uncovered accounts'));
    const notes = [...(kind === 'own' ? [skipped('query.q', 3)] : []), skipped('body.email', 2)];
    t.strictSame(log.notes(kind === 'own'), notes);
  }
});

t.test('a policy with unless counts requests whose key the log does not have, and says so', async (t) => {
  const { other, notes } = judging(`version: 1
identifiers: { ip: { source: client-address }, api-key: { source: [{ header: x-api-key }] } }
policies: [{ name: strangers, route: GET /*, identifier: ip, unless: api-key, limit: 1, window: 1h }]
`);
  for (const verdict of ['allow', 'deny'])
    t.equal(other('GET /', { holds: () => false }), `${verdict} strangers`);
  t.equal(other('GET /'), 'deny', 'the log shows that there is no key');
  t.strictSame(notes(false), [
    'strangers counted 2 requests with or without api-key, because the log does not have it',
  ]);
});

t.test('our own log: the first of several, under a policy that the gateway did not have', async (t) => {
  const rows = (identifier: string) => `version: 1
identifiers:
  ip: { source: client-address }
  site: { source: client-address, ipv6Prefix: 56 }
  session: { source: [{ cookie: sid }] }
policies:
  - { name: sessions, route: GET /a, identifier: session, limit: 50, window: 1h }
  - { name: all, route: GET /a, identifier: { first: [session, ${identifier}] }, limit: 2, window: 1h }
`;
  const lineOf = (session: string | null, isUnproven: boolean, policy = 'sessions') => ({
    identities: new Map(session === null ? [] : [['session', digest(session)]]),
    unproven: isUnproven ? ['session'] : [],
    policies: [policy],
  });
  const { own } = judging(rows('ip'));
  for (let i = 0; i < 3; i++) t.equal(own('GET /a', lineOf('pupil', false)), i < 2 ? 'allow' : 'deny');
  t.equal(own('GET /a', lineOf('invented', true)), 'allow', 'charged to the address too');
  t.equal(own('GET /a', lineOf(null, false)), 'allow', 'the gateway looked for a session: the address');
  t.equal(own('GET /a', lineOf('invented2', true)), 'deny');
  t.match(
    own('GET /a', lineOf(null, false, 'other')),
    / sessions all$/,
    'the line does not tell whether there was a session',
  );
  const wide = judging(rows('site'));
  t.equal(wide.own('GET /a', lineOf('pupil', false)), 'allow');
  t.match(wide.own('GET /a', lineOf('invented', true)), / all$/, 'the log does not have the /56');
  t.match(wide.own('GET /a', lineOf(null, false)), / all$/);
});

t.test('the name of a network: by the address of another log, or by the digest of the own one', async (t) => {
  const text = `version: 1
identifiers: { provider: { source: [{ network: networks.txt }] } }
policies: [{ name: providers, route: GET /*, identifier: provider, limit: 1, window: 1h }]
`;
  const { other, own } = judging(text, () => '192.0.2.0/24 AS64500\n');
  for (const [client, verdict] of [
    ['192.0.2.1', 'allow'],
    ['192.0.2.2', 'deny'],
    ['198.51.100.1', 'uncovered'],
  ] as const)
    t.equal(other('GET /', { peer: client, client }), verdict);
  const named = { identities: new Map([['provider', digest('named')]]), policies: ['providers'] };
  t.equal(own('GET /', named), 'allow');
  t.equal(own('GET /', named), 'deny');
  t.equal(own('GET /', { policies: ['providers'] }), 'uncovered');
  t.equal(own('GET /', { policies: [] }), 'uncovered providers', 'the policy is younger than the line');
});
