/** Tests the tests of a policy file: which pass, which fail, and their messages. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { PolicyFileError } from '#gateway/policy/problems.ts';
import { loadTestedPolicies, runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { policyFile } from '#test/support/gateway.ts';

const TABLE = `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }] }
exclude: [GET /health]
policies:
  - { name: login, route: POST /login, identifier: ip, limit: 3, window: 1m }
  - { name: site, route: "* /*", identifier: ip, limit: 5, window: 1h }
  - { name: keys, route: GET /items, identifier: key, limit: 4, window: 1m }
  - { name: search, route: GET /search, identifier: ip, limit: 4, window: 1m, bucket: search, algorithm: sliding-window }
  - { name: jobs, route: POST /jobs, identifier: ip, limit: 6, window: 1m, algorithm: token-bucket, burst: 2 }
  - { name: dear, route: GET /dear, identifier: ip, limit: 4, window: 1m, bucket: search, algorithm: sliding-window, cost: 3 }
  - { name: bytes, route: PUT /bytes, identifier: ip, limit: 1000, window: 1m, cost: body-bytes }
  - { name: password, route: POST /password, identifier: ip, limit: 2, window: 1m, count: failure }
  - { name: reports, route: POST /reports, identifier: ip, concurrency: 2 }
  - { name: find, route: GET /find, identifier: ip, limits: [{ limit: 3, window: 1s }, { limit: 50, window: 1m }, { concurrency: 40 }] }
  - { name: trial, route: GET /trial, identifier: ip, limit: 1, window: 1m, mode: shadow }
tests:
`;
const failuresOf = (tests: string) => runTests(loadPolicies(TABLE + tests, 'p.yaml'));

t.test('a right test passes', async (t) => {
  t.strictSame(
    failuresOf(`
  - { name: limit, request: POST /login, times: 4, expect: { allowed: 3, status: 429, policies: [login, site], headers: { retry-after: 60, X-Gateway-Ratelimited: true } } }
  - { name: counters of its own, request: POST /login, times: 3, expect: { allowed: 3, status: 200, headers: { x-ratelimit-remaining: 0 } } }
  - { name: excluded, request: GET /health, times: 100, expect: { allowed: 100, policies: [] } }
  - { name: a key that works, request: GET /items, headers: { x-api-key: k }, times: 5, expect: { allowed: 4, policies: [keys, site] } }
  - { name: without a key, request: GET /items, times: 5, expect: { allowed: 5, policies: [site] } }
  - { name: shadow never denies, request: GET /trial, times: 5, expect: { allowed: 5, policies: [trial, site] } }
  - { name: late in the window, request: POST /login, at: "2026-11-20T10:00:45Z", times: 4, expect: { headers: { Retry-After: 15 } } }
  - { name: malformed, request: GET /a%00b, expect: { status: 400, allowed: 0 } }
  - { name: sliding, request: GET /search, at: "2026-11-20T10:00:15Z", times: 5, expect: { allowed: 4, status: 429, headers: { Retry-After: 60, x-ratelimit-limit: 4 } } }
  - { name: bucket, request: POST /jobs, times: 3, expect: { allowed: 2, headers: { Retry-After: 10, RateLimit-Policy: '"jobs";q=2;w=20' } } }
  - { name: dear, request: GET /dear, times: 2, expect: { allowed: 1, headers: { x-ratelimit-remaining: 1 } } }
  - { name: bytes, request: PUT /bytes, headers: { content-length: 400 }, times: 3, expect: { allowed: 2, headers: { x-ratelimit-remaining: 200, Retry-After: 60, RateLimit-Policy: '"bytes";q=1000;qu="content-bytes";w=60' } } }
  - { name: too large, request: PUT /bytes, headers: { content-length: 1001 }, expect: { allowed: 0, status: 429 } }
  - { name: unknown length, request: PUT /bytes, headers: { transfer-encoding: chunked }, times: 2, expect: { allowed: 1 } }
  - { name: in flight, request: POST /reports, times: 4, expect: { allowed: 2, status: 429, policies: [reports, site], headers: { Retry-After: 1, x-ratelimit-limit: 2, RateLimit: '"reports";r=0;t=1' } } }
  - { name: one in flight, request: POST /reports, expect: { headers: { x-ratelimit-limit: 5, RateLimit: '"site";r=4;t=3600, "reports";r=1;t=1' } } }
  - { name: several limits, request: GET /find, times: 4, expect: { allowed: 3, policies: [find, site], headers: { Retry-After: 1, RateLimit-Policy: '"find.1s";q=3;w=1' } } }
  - { name: each of them, request: GET /find, expect: { policies: [find.1s, find.1m, find.concurrency, site] } }
  - { name: right passwords, request: POST /password, times: 4, expect: { allowed: 4, status: 200 } }
  - { name: wrong passwords, request: POST /password, times: 4, reply: 401, expect: { allowed: 2, status: 429 } }
  - { name: a wrong password, request: POST /password, reply: 401, expect: { allowed: 1, status: 401 } }
  - { name: IPv6, request: POST /login, from: "2001:db8::1", times: 4, expect: { allowed: 3 } }
`),
    [],
  );
});

t.test('a test can send a body', async (t) => {
  const rows = `
  - { name: account, route: POST /sign-in, identifier: { body: email }, limit: 2, window: 15m }
  - { name: strict, route: POST /strict, identifier: { body: email, required: true }, limit: 2, window: 15m }
tests:
  - { name: by account, request: POST /sign-in, from: 192.0.2.0/24, body: '{"email":"a@example.org"}', times: 4, expect: { allowed: 2, status: 429, policies: [account, site] } }
  - { name: bodies in turn, request: POST /sign-in, from: 192.0.2.0/24, body: ['{"email":"a@example.org"}', email=b%40example.org], times: 5, expect: { allowed: 4, status: 429 } }
  - { name: by form, request: POST /sign-in, from: 192.0.2.0/24, body: email=a%40example.org, times: 4, expect: { allowed: 2 } }
  - { name: another type, request: POST /sign-in, body: email=a, headers: { content-type: text/plain }, expect: { policies: [site] } }
  - { name: no body, request: POST /sign-in, expect: { policies: [site] } }
  - { name: two accounts, request: POST /sign-in, body: email=a&email=b, expect: { status: 400 } }
  - { name: required, request: POST /strict, body: name=a, expect: { status: 400 } }
`;
  t.strictSame(runTests(loadPolicies(TABLE.replace('\ntests:\n', rows), 'p.yaml')), []);
});

t.test('a test can expect marks of the last request', async (t) => {
  const marking =
    '  - { name: crawl, route: GET /crawl, identifier: ip, mode: mark, limits: [{ limit: 1, window: 1m }, { limit: 2, window: 1h }] }\ntests:\n';
  const failures = (expect: string, times: number): string[] => {
    const row = `  - { name: a, request: GET /crawl, times: ${times}, expect: { allowed: ${times}, ${expect} } }\n`;
    return runTests(loadPolicies(TABLE.replace('\ntests:\n', `\n${marking}${row}`), 'p.yaml')).map(
      ({ message }) => message,
    );
  };
  t.strictSame(failures('marked: []', 1), []);
  t.strictSame(failures('marked: [crawl.1m]', 2), []);
  t.strictSame(failures('marked: [crawl.1h, crawl.1m], status: 200', 3), []);
  t.strictSame(failures('marked: [crawl.1m]', 1), ['marked: expected crawl.1m, got none']);
  t.strictSame(failures('marked: []', 3), ['marked: expected none, got crawl.1h, crawl.1m']);
  t.throws(() => failures('marked: [crawl]', 2), { message: /unknown policy crawl; / });
});

t.test('a test sees Retry-After without its random part', async (t) => {
  const row =
    '  - { name: crawl, route: GET /crawl, identifier: ip, limit: 1, window: 1m, retryJitter: 1h }\ntests:\n  - { name: a, request: GET /crawl, times: 2, expect: { headers: { Retry-After: 60 } } }\n';
  t.strictSame(runTests(loadPolicies(TABLE.replace('\ntests:\n', `\n${row}`), 'p.yaml')), []);
});

t.test('a test can set the cost that replies report', async (t) => {
  const ai =
    '  - { name: ai, route: POST /ai, identifier: ip, limit: 1000, window: 100s, algorithm: token-bucket, cost: { replyHeader: X-Tokens, reserve: 100 } }\ntests:';
  const [identifiers = ''] = TABLE.split('exclude:');
  const file = `${identifiers}policies:\n${ai}
  - { name: reserve, request: POST /ai, times: 11, expect: { allowed: 10, headers: { x-ratelimit-limit: 1000 } } }
  - { name: much, request: POST /ai, replyHeaders: { x-tokens: 450 }, times: 4, expect: { allowed: 3, status: 429, headers: { RateLimit: '"ai";r=0;t=45', Retry-After: 45 } } }
  - { name: nothing, request: POST /ai, replyHeaders: { x-tokens: 0 }, times: 11, expect: { allowed: 11 } }
  - { name: invalid, request: POST /ai, replyHeaders: { X-Tokens: many }, times: 11, expect: { allowed: 10 } }
`;
  t.strictSame(runTests(loadPolicies(file, 'p.yaml')), []);
});

t.test('a test can set the length of replies', async (t) => {
  const files =
    '  - { name: files, route: GET /files, identifier: ip, limit: 1000, window: 100s, algorithm: token-bucket, cost: { reply-bytes: 100 } }\ntests:';
  const [identifiers = ''] = TABLE.split('exclude:');
  const file = `${identifiers}policies:\n${files}
  - { name: reserve, request: GET /files, times: 11, expect: { allowed: 10 } }
  - { name: large, request: GET /files, replyBytes: 450, times: 4, expect: { allowed: 3, status: 429, headers: { Retry-After: 45 } } }
  - { name: empty, request: HEAD /files, replyBytes: 0, replyHeaders: { content-length: 450 }, times: 11, expect: { allowed: 11 } }
`;
  t.strictSame(runTests(loadPolicies(file, 'p.yaml')), []);
});

t.test('a network: uses its addresses in turn', async (t) => {
  t.strictSame(
    failuresOf(`
  - { name: each its own, request: POST /login, from: 198.51.100.0/24, times: 100, expect: { allowed: 100 } }
  - { name: again from the first, request: POST /login, from: 198.51.100.8/31, times: 7, expect: { allowed: 6, status: 429 } }
  - { name: one address, request: POST /login, from: 198.51.100.8/32, times: 4, expect: { allowed: 3 } }
`),
    [],
  );
  for (const from of ['2001:db8::/32', '198.51.100.0/33', 'inside'])
    t.throws(
      () => failuresOf(`  - { name: a, request: POST /login, from: "${from}", expect: { allowed: 1 } }\n`),
      {
        message: new RegExp(`from is ${from}; write an address such as 192.0.2.1, or an IPv4 network`),
      },
    );
});

t.test('a failing test is reported with line, expected and actual result', async (t) => {
  t.strictSame(
    failuresOf(`  - name: too few
    request: POST /login
    times: 4
    expect: { allowed: 4, status: 200, policies: [site], headers: { Retry-After: 1, X-None: a } }
`),
    [
      {
        name: 'too few',
        line: 19,
        message:
          'allowed: expected 4, got 3 of 4; status: expected 200, got 429; policies: expected site, got login, site; header retry-after: expected 1, got 60; header x-none: expected a, got none',
      },
    ],
  );
});

t.test('mistakes in tests are mistakes of the file', async (t) => {
  const messageOf = (test: string): string => {
    try {
      loadPolicies(`${TABLE}  - ${test}\n`, 'p.yaml');
      return 'none';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const cases = [
    ['{ name: a, request: login, expect: { allowed: 1 } }', /p\.yaml:19:\d+: "login" is not a request/],
    ['{ name: a, request: GET /, from: home, expect: { allowed: 1 } }', /from is home/],
    ['{ name: a, request: GET /, at: soon, expect: { allowed: 1 } }', /at is soon/],
    ['{ name: a, request: GET /, expect: { allowed: 2 } }', /allowed is more than times/],
    ['{ name: a, request: GET /, expect: { policies: [nobody] } }', /unknown policy nobody/],
    ['{ name: a, request: GET /, expect: {} }', /expect is/],
    ['{ name: a, request: GET / }', /expect is missing/],
    ['{ request: GET /, expect: { allowed: 1 } }', /name is missing/],
    ['{ name: a, request: GET /, times: 10001, expect: { allowed: 1 } }', /times is 10001/],
    [
      '{ name: a, request: GET /, times: 9999, expect: { allowed: 1 } }\n  - { name: b, request: GET /, times: 2, expect: { allowed: 1 } }',
      /10001 requests together/,
    ],
  ] as const;
  for (const [test, message] of cases) t.match(messageOf(test), message, test);
});

t.test('a file with a failing test is not used', async (t) => {
  const text = `${TABLE}  - { name: wrong, request: GET /health, expect: { status: 429 } }\n`;
  t.throws(() => loadTestedPolicies(text, 'p.yaml'), PolicyFileError);
  t.throws(() => loadTestedPolicies(text, 'p.yaml'), {
    message: /p\.yaml:19:1: test "wrong" fails: status: expected 429, got 200/,
  });
});

t.test('a test can say that the client is a regular', (t) => {
  const site =
    'name: site, route: "GET /*", identifier: ip, limit: 9, window: 1h, newcomers: { limit: 2, window: 1m }';
  const set = loadPolicies(
    `${policyFile(site)}
tests:
  - { name: newcomers, request: GET /, from: 192.0.2.0/24, times: 4, expect: { allowed: 2, policies: [site, site.newcomers], status: 429 } }
  - { name: regulars, request: GET /, from: 192.0.0.0/16, regular: true, times: 2000, expect: { allowed: 2000, policies: [site] } }
  - { name: their own limit, request: GET /, regular: true, times: 10, expect: { allowed: 9, policies: [site] } }
  - { name: it is of this test only, request: GET /, from: 192.0.2.0/24, times: 4, regular: false, expect: { allowed: 2 } }
  - { name: a client has a share, request: GET /, times: 4, expect: { allowed: 1, policies: [site, site.newcomers], status: 429 } }
`,
    'p.yaml',
  );
  t.strictSame(runTests(set), []);
  t.end();
});
