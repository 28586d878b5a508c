import t from 'tap';
import { isClientRoute, LIMIT_HEADERS, RATELIMITED_HEADER } from '#gateway/http/header-names.ts';
import type { Verdict } from '#gateway/limiter/limiter.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { UNREAD } from '#gateway/reply/cors.ts';
import { limitHeaders } from '#gateway/reply/limit-headers.ts';
import { policy } from '#test/support/spend.ts';

const storage = policy('management-storage', 5, 60);
const management = policy('management', 100, 60);
const silent = policy('silent', 1, 60, { headers: false });

/** Builds the verdict of a policy on a client who has this much left. */
const verdict = (of: Policy, remaining: number, resetMs: number): Verdict => ({
  policy: of,
  capacity: of.limit,
  limit: of.limit,
  remaining,
  resetMs,
});

t.test('several policies: the trio of the tightest, and the pair with all of them', async (t) => {
  const verdicts = [verdict(storage, 0, 1), verdict(management, 99, 59_001)];
  t.strictSame(limitHeaders(verdicts), [
    'x-ratelimit-limit',
    '5',
    'x-ratelimit-remaining',
    '0',
    'x-ratelimit-reset',
    '1',
    'RateLimit-Policy',
    '"management-storage";q=5;w=60, "management";q=100;w=60',
    'RateLimit',
    '"management-storage";r=0;t=1, "management";r=99;t=60',
  ]);
});

t.test('a policy with headers: off is left out, even if it is the tightest', async (t) => {
  const quiet = verdict(silent, 0, 1000);
  const told = verdict(management, 9, 1000);
  t.strictSame(limitHeaders([quiet, told]), limitHeaders([told]));
  t.strictSame(limitHeaders([told, quiet]), limitHeaders([told]));
  t.strictSame(limitHeaders([quiet]), []);
  t.strictSame(limitHeaders([]), []);
});

t.test('two policies of one name, before and after a reload, keep their own texts', async (t) => {
  const edited = policy('management', 200, 3600);
  const [, before] = limitHeaders([verdict(management, 1, 1)]);
  const after = limitHeaders([verdict(edited, 1, 1)]);
  t.equal(before, '100');
  t.equal(after[1], '200');
  t.equal(after[7], '"management";q=200;w=3600');
  const own = limitHeaders([{ ...verdict(management, 1, 1), capacity: 7, limit: 7 }]);
  t.strictSame([own[1], own[7]], ['7', '"management";q=7;w=60'], 'the limit of one client');
});

t.test('browsers can read every limit header', async (t) => {
  const exposed =
    'x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset, ratelimit-policy, ratelimit, x-gateway-ratelimited, x-gateway-decision, retry-after';
  t.strictSame(UNREAD.headers, [
    'Access-Control-Allow-Origin',
    '*',
    'Access-Control-Expose-Headers',
    exposed,
  ]);
  t.equal(RATELIMITED_HEADER, 'x-gateway-ratelimited');
  const written = limitHeaders([verdict(management, 1, 1)]).filter((_, i) => i % 2 === 0);
  t.strictSame(
    written.map((name) => name.toLowerCase()),
    LIMIT_HEADERS,
    'exactly these headers are removed from the upstream’s replies',
  );
});

t.test('client routes are the client API of any version, and no similar paths', async (t) => {
  for (const path of [
    '/api/v1/client',
    '/api/v1/client/w/environment',
    '/api/v2/client/w',
    '/api/v10/client/og',
  ])
    t.ok(isClientRoute(path), path);
  for (const path of [
    '/',
    '/api/v1/clients',
    '/api/client/w',
    '/api/v/client',
    '/x/api/v1/client',
    '/api/v1/management/client',
  ])
    t.notOk(isClientRoute(path), path);
});

t.test('a token bucket reports its burst and the time to fill it', async (t) => {
  const bucket = policy('bucket', 10, 60, { algorithm: 'token-bucket', capacity: 25 });
  t.match(limitHeaders([{ policy: bucket, capacity: 25, limit: 10, remaining: 24, resetMs: 6000 }]), [
    'x-ratelimit-limit',
    '25',
    'x-ratelimit-remaining',
    '24',
    'x-ratelimit-reset',
    '6',
    'RateLimit-Policy',
    '"bucket";q=25;w=150',
  ]);
  const own = limitHeaders([{ policy: bucket, capacity: 25, limit: 20, remaining: 24, resetMs: 3000 }]);
  t.equal(own[7], '"bucket";q=25;w=75', 'the limit of the override');
});
