import t from 'tap';
import type { Identity } from '#gateway/identity/digest.ts';
import { chargeFor, proofKey } from '#gateway/limiter/charge.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { type Cover, createMatcher } from '#gateway/policy/match.ts';
import { identity } from '#test/support/spend.ts';

function coversOf(paths: readonly string[], ...rows: readonly string[]): Cover[] {
  const set = loadPolicies(
    [
      'version: 1',
      'identifiers:',
      '  ip: { source: client-address }',
      '  key: { source: [{ header: x-api-key }] }',
      '  tenant: { source: [{ header: x-tenant }] }',
      'policies:',
      ...rows.map((row) => `  - { window: 1m, ${row} }`),
    ].join('\n'),
    'policies.yaml',
  );
  const match = createMatcher(set);
  return paths.map((path) => {
    const result = match('GET', path);
    if (!result.ok || result.cover === null) throw new Error(`${path} is not covered`);
    return result.cover;
  });
}

const ADDRESS = identity('address');
const KEY = identity('key');
const TENANT = identity('tenant');

function keys(
  cover: Cover | undefined,
  identities: readonly (Identity | null)[],
  proven: readonly Identity[] = [],
) {
  if (cover === undefined) throw new Error('no cover');
  const charge = chargeFor(
    cover,
    { identities, proofs: null, parts: null, values: [] },
    () => ADDRESS,
    (credential) => proven.includes(credential),
    null,
  );
  const name = (key: string): string =>
    key.replace(ADDRESS.digest, 'ADDRESS').replace(KEY.digest, 'KEY').replace(TENANT.digest, 'TENANT');
  return charge?.buckets.map(({ key }) => name(key));
}

t.test('a request is charged to every policy whose identity it presents', async (t) => {
  const [cover] = coversOf(
    ['/a'],
    'name: by-ip, route: GET /a, identifier: ip, limit: 5',
    'name: by-key, route: GET /*, identifier: key, limit: 5',
  );
  t.strictSame(keys(cover, [ADDRESS, null]), ['fg:{ADDRESS}:by-ip:60'], 'without a key');
  t.strictSame(
    keys(cover, [ADDRESS, KEY]),
    ['fg:{ADDRESS}:by-ip:60', 'fg:{KEY}:by-key:60', 'fg:{ADDRESS}:by-key:60:unproven'],
    'an unproven key is also charged to its address',
  );
  t.strictSame(keys(cover, [ADDRESS, KEY], [KEY]), ['fg:{ADDRESS}:by-ip:60', 'fg:{KEY}:by-key:60']);
  t.equal(keys(cover, [null, null]), undefined, 'without an identity');
  t.equal(proofKey(KEY), `fg:{${KEY.digest}}:proven`);
});

t.test('each unproven credential of a request is charged to the address', async (t) => {
  const [cover] = coversOf(
    ['/a'],
    'name: by-key, route: GET /*, identifier: key, limit: 5',
    'name: by-tenant, route: GET /*, identifier: tenant, limit: 5',
  );
  t.strictSame(keys(cover, [KEY, TENANT]), [
    'fg:{KEY}:by-key:60',
    'fg:{ADDRESS}:by-key:60:unproven',
    'fg:{TENANT}:by-tenant:60',
    'fg:{ADDRESS}:by-tenant:60:unproven',
  ]);
  t.strictSame(keys(cover, [KEY, TENANT], [KEY]), [
    'fg:{KEY}:by-key:60',
    'fg:{TENANT}:by-tenant:60',
    'fg:{ADDRESS}:by-tenant:60:unproven',
  ]);
});

t.test(
  'rows that share a bucket have one counter, reported as that of the first row that matches',
  async (t) => {
    const covers = coversOf(
      ['/first', '/a', '/z'],
      'name: first, route: GET /first, identifier: ip, limit: 5, bucket: b',
      'name: second, route: GET /a, identifier: ip, limit: 5, bucket: b',
      'name: third, route: GET /*, identifier: ip, limit: 5, bucket: b',
    );
    for (const cover of covers) t.strictSame(keys(cover, [ADDRESS]), ['fg:{ADDRESS}:b:60']);
    t.strictSame(
      covers.map(({ counters }) => counters.map(({ counter }) => counter.policy.name)),
      [['first'], ['second'], ['third']],
    );
  },
);

t.test('requests of one tick are decided together only if they have the same limit', async (t) => {
  const [cover] = coversOf(
    ['/a'],
    'name: a, route: GET /a, identifier: key, limit: 5, overrides: [{ for: { address: 10.0.0.0/8 }, limit: 9 }, { for: { address: 11.0.0.0/8 }, limit: 12 }]',
  );
  if (cover === undefined) throw new Error('no cover');
  const idFrom = (address: readonly number[]): string | undefined =>
    chargeFor(
      cover,
      { identities: [KEY], proofs: null, parts: null, values: [] },
      () => ADDRESS,
      () => true,
      { address, plan: null, words: [] },
    )?.id;
  t.equal(idFrom([10, 0, 0, 1]), idFrom([10, 0, 0, 2]));
  t.equal(idFrom([11, 0, 0, 1]), idFrom([11, 0, 0, 2]));
  const limits = [
    [10, 0, 0, 1],
    [11, 0, 0, 1],
    [12, 0, 0, 1],
  ].map(idFrom);
  t.equal(new Set(limits).size, 3, 'limits of 9, 12 and 5');
});
