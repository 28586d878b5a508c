/** Tests `explain` with counters that other requests have used. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { explain } from '#gateway/workbench/rehearsal/explain.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { requestOf } from '#gateway/workbench/rehearsal/request-text.ts';

const NOON = Date.UTC(2026, 0, 1, 12);

t.test('an unproven key waits while others have used up the limit of its address', async (t) => {
  for (const algorithm of ['fixed-window', 'sliding-window']) {
    const set = loadPolicies(
      `version: 1
identifiers: { key: { source: [{ header: x-api-key }] } }
policies: [{ name: keys, route: GET /items, identifier: key, limit: 5, window: 1h, algorithm: ${algorithm} }]
`,
      'p.yaml',
    );
    const rehearsal = new Rehearsal(set, { clock: () => NOON });
    const withKey = (key: string) => requestOf('GET /items', [`x-api-key: ${key}`], '192.0.2.1');
    for (const key of ['one', 'two', 'three', 'four', 'five'])
      t.equal(rehearsal.ask(withKey(key)).kind, 'allow');
    const explained = explain(set, rehearsal, withKey('six'));
    t.match(explained, {
      decision: 'deny',
      status: 429,
      policies: [{ used: 0, remaining: 0, reason: /counted too \(5 of 5 used\)/ }],
    });
  }
});

t.test('explains a cost that replies report', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: ai, route: POST /ai, identifier: ip, limit: 5000, window: 1h, cost: { replyHeader: X-Tokens, reserve: 500 } }]
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const request = requestOf('POST /ai', [], '192.0.2.1');
  const asked = rehearsal.ask(request);
  if (asked.kind === 'allow') rehearsal.answered(asked, 200, ['x-tokens', '1200']);
  t.match(explain(set, rehearsal, request), {
    decision: 'allow',
    policies: [
      {
        used: 1200,
        cost: 500,
        reason: /, it reserves 500 until the reply reports its units in x-tokens$/,
      },
    ],
  });
});

t.test('explains a cost in bytes of replies', async (t) => {
  const file = (cost: string): string => `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: files, route: GET /a, identifier: ip, limit: 5000, window: 1h, cost: ${cost} }]
`;
  for (const [cost, reserve] of [
    ['reply-bytes', 50],
    ['{ reply-bytes: 700 }', 700],
  ] as const) {
    const set = loadPolicies(file(cost), 'p.yaml');
    const rehearsal = new Rehearsal(set, { clock: () => NOON });
    const request = requestOf('GET /a', [], '192.0.2.1');
    const asked = rehearsal.ask(request);
    if (asked.kind === 'allow') rehearsal.answered(asked, 200, null, 1300);
    const reason = new RegExp(
      `, it reserves ${reserve} until the reply ends and takes the bytes of its body$`,
    );
    t.match(explain(set, rehearsal, request), { policies: [{ used: 1300, cost: reserve, reason }] });
  }
});

t.test('explains that clients of some networks never become regulars', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address }, key: { source: [{ header: x-api-key }] } }
regulars: { keys: [key], never: { network: n.txt } }
policies: [{ name: site, route: GET /a, identifier: ip, limit: 9, window: 1h, newcomers: { limit: 5, window: 1h } }]
`,
    'p.yaml',
    () => '203.0.113.0/24 AS64500\n',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const reasonFor = (from: string, headers: string[] = []): string | undefined =>
    explain(set, rehearsal, requestOf('GET /a', headers, from)).policies[1]?.reason;
  const counted = 'route matches, all newcomers are counted together; ';
  const wait = 'not counted once the client is a regular, with good replies on 2 different days within 30';
  const never = `its network is under regulars.never, so it never becomes a regular`;
  rehearsal.welcome(requestOf('GET /a', [], '203.0.113.1'));
  t.equal(reasonFor('203.0.113.1'), counted + never);
  t.equal(reasonFor('203.0.113.1', ['x-api-key: one']), counted + never);
  t.equal(reasonFor('192.0.2.1'), counted + wait);
  rehearsal.welcome(requestOf('GET /a', [], '192.0.2.1'));
  t.equal(reasonFor('192.0.2.1'), 'the client is a regular');
});

t.test('explains different values: new, used before, none, and one too many', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address } }
policies: [{ name: accounts, route: POST /login, identifier: ip, distinct: { body: email }, limit: 2, window: 1h }]
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const login = (body: string) => ({
    ...requestOf('POST /login', ['content-type: application/json'], '192.0.2.1'),
    body,
  });
  const withEmail = (email: string) => login(JSON.stringify({ email }));
  const explained = (body: string) => explain(set, rehearsal, login(body)).policies[0];
  t.match(explained('{}'), {
    matched: false,
    reason: 'the request presents no body.email in a JSON or form body of at most 8 KiB',
  });
  t.equal(rehearsal.ask(withEmail('a')).kind, 'allow');
  t.match(explained('{"email":"A"}'), {
    matched: true,
    reason: /, its value was used before, so it takes nothing; only each new body.email counts$/,
    ...{ used: 1, cost: 0, remaining: 1 },
  });
  t.match(explained('{"email":"b"}'), { used: 1, cost: 1, remaining: 1, algorithm: 'fixed-window' });
  t.equal(rehearsal.ask(withEmail('b')).kind, 'allow');
  t.match(explain(set, rehearsal, withEmail('c')), {
    decision: 'deny',
    reason: 'accounts (line 3) allows 2 different values in 3600 s',
  });
});

t.test('a policy names the condition that does not hold', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address }, key: { source: [{ header: x-api-key }] } }
exclude: [{ route: GET /free, hosts: [shop.test] }]
deny: [{ route: GET /closed, hosts: [shop.test] }]
policies:
  - { name: robots, route: GET /*, identifier: everyone, userAgent: [GPTBot], limit: 5, window: 1h }
  - { name: deep, route: GET /*, identifier: ip, query: [page], limit: 5, window: 1h }
  - { name: most, route: GET /*, identifier: ip, except: [GET /items], limit: 5, window: 1h }
  - { name: strangers, route: GET /*, identifier: ip, unless: key, limit: 5, window: 1h }
  - { name: other, route: POST /*, identifier: ip, query: [page], limit: 5, window: 1h }
  - { name: shop, route: GET /*, identifier: ip, hosts: [shop.test, "*.b.test"], limit: 5, window: 1h }
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const request = (headers: readonly string[], target = '/items') =>
    requestOf(`GET ${target}`, headers, '192.0.2.1');
  t.match(explain(set, rehearsal, request([])).policies, [
    { name: 'robots', matched: false, reason: 'its User-Agent names none of: GPTBot' },
    { name: 'deep', matched: false, reason: 'its query has none of: page' },
    { name: 'most', matched: false, reason: 'except has: GET /items' },
    { name: 'strangers', matched: true },
    { name: 'other', matched: false, reason: /POST/ },
    { name: 'shop', matched: false, reason: 'its host is none of: shop.test, *.b.test' },
  ]);
  t.match(explain(set, rehearsal, request(['Host: A.B.test:80'])).policies[5], {
    name: 'shop',
    matched: true,
  });
  t.match(explain(set, rehearsal, request(['Host: shop.test'], '/free')), {
    decision: 'uncovered',
    reason: 'exclude has "GET /free for shop.test": no policy applies',
  });
  t.match(explain(set, rehearsal, request(['Host: shop.test'], '/closed')), {
    decision: 'deny',
    reason: /deny has GET \/closed for shop\.test \(line 4\)/,
  });
  t.match(explain(set, rehearsal, request(['Host: 127.1'])), {
    decision: 'malformed',
    reason: /the Host header/,
  });
  const unproven = explain(set, rehearsal, request(['x-api-key: mine'], '/other?page=2'));
  t.match(unproven.policies.slice(1), [
    { name: 'deep', matched: true, used: 0 },
    { name: 'most', matched: true, used: 0 },
    { name: 'strangers', matched: true, reason: /not counted once its key is proven/ },
  ]);

  const answered = rehearsal.ask(request(['x-api-key: mine']));
  if (answered.kind !== 'allow') throw new Error('it is admitted');
  rehearsal.answered(answered, 200);
  t.match(explain(set, rehearsal, request(['x-api-key: mine'])).policies[3], {
    name: 'strangers',
    matched: false,
    reason: 'its key is proven',
  });
  t.match(explain(set, rehearsal, request(['Host: a.test'], '/closed')), { decision: 'allow' });
});

t.test('a policy that counts nobody names each possible reason', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers: { ip: { source: client-address }, key: { source: [{ header: x-api-key }] } }
policies:
  - { name: tried, route: POST /*, identifier: ip, unless: key, rollout: 1%, limit: 5, window: 1h }
  - { name: account, route: POST /*, identifier: { body: email }, unless: key, limit: 5, window: 1h }
  - { name: pages, route: GET /*, identifier: ip, unless: key, limit: 5, window: 1h }
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const request = {
    method: 'POST',
    target: '/login',
    rawHeaders: ['x-api-key', 'mine'],
    body: '{"email":"a@example.org"}',
    socket: { remoteAddress: '192.0.2.1' },
  };
  const answered = rehearsal.ask({ ...request, method: 'GET', body: undefined });
  if (answered.kind !== 'allow') throw new Error('it is admitted');
  rehearsal.answered(answered, 200);
  t.match(explain(set, rehearsal, request).policies.slice(0, 2), [
    { matched: false, reason: 'its key is proven, or the client is not in the rollout of 1%' },
    {
      matched: false,
      reason:
        'the request presents no body.email in a JSON or form body of at most 8 KiB, or its key is proven',
    },
  ]);
});

t.test('names the part that counts, of a policy that counts the first of several', async (t) => {
  const set = loadPolicies(
    `version: 1
identifiers:
  ip: { source: client-address }
  session: { source: [{ cookie: sid }] }
  key: { source: [{ header: x-api-key }] }
policies:
  - { name: all, route: GET /a, identifier: { first: [session, key, ip] }, limit: 5, window: 1h }
  - { name: credentials, route: GET /a, identifier: { first: [session, key] }, limit: 5, window: 1h }
`,
    'p.yaml',
  );
  const rehearsal = new Rehearsal(set, { clock: () => NOON });
  const reasons = (...headers: string[]): string[] =>
    explain(set, rehearsal, requestOf('GET /a', headers, '192.0.2.1')).policies.map(({ reason }) => reason);
  const address = 'because it presents no session and no key';
  t.strictSame(reasons(), [
    `route matches, the client address is counted, ${address}`,
    'the request presents no session and no key',
  ]);
  t.strictSame(reasons('cookie: sid=a', 'x-api-key: b'), [
    'route matches, its session is counted; unproven, so its address is counted too (1 of 5 used)',
    'route matches, its session is counted; unproven, so its address is counted too (0 of 5 used)',
  ]);
  const key = 'its key is counted, because it presents no session';
  t.strictSame(reasons('x-api-key: b'), [
    `route matches, ${key}; unproven, so its address is counted too (2 of 5 used)`,
    `route matches, ${key}; unproven, so its address is counted too (1 of 5 used)`,
  ]);
});
