/** A log of another program has no bodies, so a policy that counts one is skipped and its requests are incomplete. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { Clients } from '#gateway/workbench/replay/clients.ts';
import { Judge } from '#gateway/workbench/replay/judge.ts';
import { notesOf } from '#gateway/workbench/replay/notes.ts';
import { Tally } from '#gateway/workbench/replay/tally.ts';
import { policyFile } from '#test/support/gateway.ts';

t.test('a field of the body is unknown, because logs do not have it', async (t) => {
  const set = loadPolicies(
    policyFile(
      'name: account, route: POST /login, identifier: { body: email, required: true }, limit: 1, window: 1h',
      'name: address, route: POST /login, identifier: ip, limit: 5, window: 1h',
    ),
    'p.yaml',
  );
  const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
  const request = {
    at: 0,
    method: 'POST',
    target: '/login',
    status: 200,
    bytes: 2,
    durationMs: 1,
    digests: null,
  };
  const [peer, client] = ['192.0.2.1', '192.0.2.1'];
  const sender = { peer, client, forwardedFor: '', headers: [], concealed: [], holds: () => true };
  for (let i = 0; i < 2; i++) {
    const { weighed, unknown } = judge.judge({ ...request, sender });
    t.match(weighed, { kind: 'allow' });
    t.strictSame(
      unknown.map(({ name }) => name),
      ['account'],
    );
  }
});

t.test('different values: paths and queries are in a log, bodies are not, and a note says so', async (t) => {
  const set = loadPolicies(
    policyFile(
      'name: pages, route: "GET /p/{id}", identifier: ip, distinct: path, limit: 2, window: 1h',
      'name: numbers, route: "GET /p/{id}", identifier: ip, distinct: path.id, limit: 9, window: 1h',
      'name: searches, route: GET /search, identifier: ip, distinct: { query: q }, limit: 2, window: 1h',
      'name: accounts, route: POST /login, identifier: ip, distinct: { body: email }, limit: 2, window: 1h',
    ),
    'p.yaml',
  );
  const sender = {
    ...{ peer: '192.0.2.1', client: '192.0.2.1', forwardedFor: '', headers: [], concealed: [] },
    holds: () => true,
  };
  const digests = {
    ...{ decision: 'allow' as const, identities: [], address: 'A'.repeat(22), unproven: [], proves: false },
    ...{ plan: null, policies: '["pages"]' },
  };
  const exact = { late: 0, cutShort: [], chained: 0, endless: 0, isFull: false };
  for (const own of [false, true]) {
    const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
    const tally = new Tally(set, new Clients());
    const kinds = (asked: readonly string[]): string[] =>
      asked.map((text) => {
        const [method = '', target = ''] = text.split(' ');
        const request = { at: 0, method, target, status: 200, bytes: 2, durationMs: 1 };
        const judged = judge.judge(
          own ? { ...request, digests, sender: null } : { ...request, digests: null, sender },
        );
        tally.add(judged, 0);
        return judged.weighed.kind;
      });
    t.strictSame(kinds(['GET /p/1', 'GET /p/2', 'GET /p/1', 'GET /p/3']), [
      'allow',
      'allow',
      'allow',
      'deny',
    ]);
    const searched = kinds(['GET /search?q=1', 'GET /search?q=2', 'GET /search?q=3']);
    t.strictSame(searched, own ? Array(3).fill('uncovered') : ['allow', 'allow', 'deny']);
    t.strictSame(kinds(['POST /login', 'POST /login']), ['uncovered', 'uncovered']);
    const skipped = (name: string, requests: number): string =>
      `policies by ip and different ${name} were skipped for ${requests} requests, because the log does not have it`;
    const notes = notesOf({ set, results: tally.results, hasDigests: own, ...exact });
    t.strictSame(notes, [...(own ? [skipped('query.q', 3)] : []), skipped('body.email', 2)]);
  }
});

t.test('a policy with unless counts requests whose key the log does not have, and says so', async (t) => {
  const text = `version: 1
identifiers: { ip: { source: client-address }, api-key: { source: [{ header: x-api-key }] } }
policies: [{ name: strangers, route: GET /*, identifier: ip, unless: api-key, limit: 1, window: 1h }]
`;
  const set = loadPolicies(text, 'p.yaml');
  const judge = new Judge(set, { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' });
  const request = { at: 0, method: 'GET', target: '/', status: 200, bytes: 2, durationMs: 1, digests: null };
  const [peer, client] = ['192.0.2.1', '192.0.2.1'];
  const sender = { peer, client, forwardedFor: '', headers: [], concealed: [], holds: () => false };
  const tally = new Tally(set, new Clients());
  for (const verdict of ['allow', 'deny']) {
    const judged = judge.judge({ ...request, sender });
    t.match(judged, { weighed: { kind: verdict }, unknown: [{ name: 'strangers' }] });
    tally.add(judged, 0);
  }
  const { unknown } = judge.judge({ ...request, sender: { ...sender, holds: () => true } });
  t.strictSame(unknown, [], 'the log shows that there is no key');
  const exact = { late: 0, cutShort: [], chained: 0, endless: 0, hasDigests: false, isFull: false };
  t.strictSame(notesOf({ set, results: tally.results, ...exact }), [
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
  const digest = (name: string): string => name.padEnd(22, 'A');
  const line = (session: string | null, isUnproven: boolean, policies: string) => ({
    at: 0,
    method: 'GET',
    target: '/a',
    status: 200,
    bytes: 2,
    durationMs: 1,
    sender: null,
    digests: {
      decision: 'allow' as const,
      identities: session === null ? [] : ['session', digest(session)],
      address: digest('address'),
      unproven: isUnproven ? ['session'] : [],
      proves: false,
      plan: null,
      policies,
    },
  });
  const options = { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' } as const;
  const judge = new Judge(loadPolicies(rows('ip'), 'p.yaml'), options);
  const kindOf = (...of: Parameters<typeof line>) => judge.judge(line(...of)).weighed.kind;
  for (let i = 0; i < 3; i++) t.equal(kindOf('pupil', false, '"sessions"'), i < 2 ? 'allow' : 'deny');
  t.equal(kindOf('invented', true, '"sessions"'), 'allow', 'charged to the address too');
  t.equal(kindOf(null, false, '"sessions"'), 'allow', 'the gateway looked for a session: the address');
  t.equal(kindOf('invented2', true, '"sessions"'), 'deny');
  t.strictSame(
    judge.judge(line(null, false, '"other"')).unknown.map(({ name }) => name),
    ['sessions', 'all'],
    'the line does not tell whether there was a session',
  );
  const wide = new Judge(loadPolicies(rows('site'), 'p.yaml'), options);
  const unknown = (...of: Parameters<typeof line>) => wide.judge(line(...of)).unknown.map(({ name }) => name);
  t.strictSame(unknown('pupil', false, '"sessions"'), []);
  t.strictSame(unknown('invented', true, '"sessions"'), ['all'], 'the log does not have the /56');
  t.strictSame(unknown(null, false, '"sessions"'), ['all']);
});

t.test('the name of a network: by the address of another log, or by the digest of the own one', async (t) => {
  const text = `version: 1
identifiers: { provider: { source: [{ network: networks.txt }] } }
policies: [{ name: providers, route: GET /*, identifier: provider, limit: 1, window: 1h }]
`;
  const set = loadPolicies(text, 'p.yaml', () => '192.0.2.0/24 AS64500\n');
  const options = { clock: () => 0, trust: { kind: 'none' }, salt: 'salt' } as const;
  const request = { at: 0, method: 'GET', target: '/', status: 200, bytes: 2, durationMs: 1 };
  const others = new Judge(set, options);
  const from = (client: string) =>
    others.judge({
      ...request,
      digests: null,
      sender: { peer: client, client, forwardedFor: '', headers: [], concealed: [], holds: () => false },
    });
  t.match(from('192.0.2.1'), { weighed: { kind: 'allow' }, unknown: [] });
  t.match(from('192.0.2.2'), { weighed: { kind: 'deny' }, unknown: [] });
  t.match(from('198.51.100.1'), { weighed: { kind: 'uncovered' }, unknown: [] });

  const own = new Judge(set, options);
  const logged = (identities: readonly string[], policies: string) =>
    own.judge({
      ...request,
      sender: null,
      digests: {
        decision: 'allow',
        plan: null,
        identities,
        address: 'AAAAABAAAAC_____AAAAAA',
        unproven: [],
        proves: false,
        policies,
      },
    });
  const named = ['provider', 'BBBBBBBBBBBBBBBBBBBBBA'];
  t.match(logged(named, '["providers"]'), { weighed: { kind: 'allow' }, unknown: [] });
  t.match(logged(named, '["providers"]'), { weighed: { kind: 'deny' }, unknown: [] });
  t.match(logged([], '["providers"]'), { weighed: { kind: 'uncovered' }, unknown: [] });
  t.match(logged([], '[]'), { unknown: [{ name: 'providers' }] }, 'the policy is younger than the line');
});
