import t from 'tap';
import { chargeFor, Identities, Identity } from '#gateway/identity/identity.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import { type Cover, createMatcher } from '#gateway/policy/match.ts';
import type { Identifier } from '#gateway/policy/policy.ts';

const IP: Identifier = { name: 'ip', kind: 'address', ipv6Prefix: 64 };
const KEY: Identifier = {
  name: 'key',
  kind: 'credential',
  sources: [{ kind: 'header', header: 'x-api-key' }],
};

function coverOf(path: string, ...rows: readonly string[]): Cover {
  return coversOf([path], ...rows)[0] as Cover;
}

/** The covers of some paths under one policy file. */
function coversOf(paths: readonly string[], ...rows: readonly string[]): Cover[] {
  const set = loadPolicies(
    `version: 1
identifiers:
  ip: { source: client-address }
  key: { source: [{ header: x-api-key }] }
  tenant: { source: [{ header: x-tenant }] }
policies:
${rows.map((row) => `  - { ${row}, window: 1m }`).join('\n')}
`,
    'policies.yaml',
  );
  const match = createMatcher(set);
  return paths.map((path) => {
    const result = match('GET', path);
    if (!result.ok || result.cover === null) throw new Error(`${path} is not covered`);
    return result.cover;
  });
}

const keysOf = (charge: { readonly buckets: readonly { readonly key: string }[] } | null) =>
  charge?.buckets.map(({ key }) => key);

t.test('a digest has a fixed length and nothing of what it stands for', async (t) => {
  const identities = new Identities('salt');
  for (const value of ['1.2.3.4', '2001:db8::/64', 'fbk_secret', 'x'.repeat(10_000), '\xff', 'untrusted']) {
    const { digest, proofKey } = identities.of(KEY, value);
    t.match(digest, /^[\w-]{22}$/, '16 bytes, base64url');
    t.notOk(digest.includes(value) || proofKey.includes(value));
    t.equal(proofKey, `fg:{${digest}}:proven`);
  }
});

t.test('the salt decides the digest; replicas with the same salt agree', async (t) => {
  const digest = (salt: string) => new Identities(salt).of(IP, '1.2.3.4').digest;
  t.equal(digest('salt'), digest('salt'));
  t.not(digest('salt'), digest('other salt'));
});

t.test(
  'an address is one identity under any name; a credential is told apart by its identifier',
  async (t) => {
    const identities = new Identities('salt');
    t.equal(identities.of(IP, '1.2.3.4'), identities.of({ ...IP, name: 'client' }, '1.2.3.4'));
    t.equal(identities.of(KEY, 'k'), identities.of(KEY, 'k'), 'one object while it is active');
    t.not(identities.of(KEY, 'k').digest, identities.of({ ...KEY, name: 'tenant' }, 'k').digest);
    t.not(identities.of(KEY, 'k').digest, identities.of(KEY, 'K').digest);
  },
);

t.test('a credential that reads like an address is not that address', async (t) => {
  const identities = new Identities('salt');
  for (const name of ['address', 'ip', 'key'])
    t.not(identities.of({ ...KEY, name }, '1.2.3.4').digest, identities.of(IP, '1.2.3.4').digest, name);
});

t.test('a bucket key names bucket and window, so that unrelated edits never reset a counter', async (t) => {
  const cover = coverOf('/a', 'name: a, route: GET /a, identifier: ip, limit: 5, bucket: shared');
  const identity = new Identity('DIGEST');
  const [policy] = cover.policies;
  if (policy === undefined) throw new Error('no policy');
  t.equal(identity.bucket(policy).key, 'fg:{DIGEST}:shared:60');
  t.equal(identity.unprovenBucket(policy).key, 'fg:{DIGEST}:shared:60:unproven');
  t.equal(identity.bucket(policy), identity.bucket(policy), 'one object');
  t.equal(identity.unprovenBucket(policy), identity.unprovenBucket(policy), 'one object');
  t.match(identity.bucket(policy), { onlyUnproven: false, policy });
  t.match(identity.unprovenBucket(policy), { onlyUnproven: true, policy });
});

t.test('rows that share a bucket are one bucket, which speaks as the first of them', async (t) => {
  const address = new Identity('A');
  const [first, both, last] = coversOf(
    ['/first', '/a', '/z'],
    'name: first, route: GET /first, identifier: ip, limit: 5, bucket: b',
    'name: second, route: GET /a, identifier: ip, limit: 5, bucket: b',
    'name: third, route: GET /*, identifier: ip, limit: 5, bucket: b',
  ).map((cover) => chargeFor(cover, [address], address, 0)?.buckets);
  t.equal(both?.length, 1, 'charged once, though two rows match');
  t.equal(both?.[0]?.policy.name, 'first', 'also when the first row does not match');
  t.equal(first?.[0], both?.[0]);
  t.equal(last?.[0], both?.[0]);
});

t.test('a request is charged to every policy whose identity it presents', async (t) => {
  const cover = coverOf(
    '/a',
    'name: by-ip, route: GET /a, identifier: ip, limit: 5',
    'name: by-key, route: GET /*, identifier: key, limit: 5',
  );
  const address = new Identity('ADDRESS');
  const key = new Identity('KEY');
  t.strictSame(keysOf(chargeFor(cover, [address, null], address, 0)), ['fg:{ADDRESS}:by-ip:60'], 'no key');
  t.strictSame(
    keysOf(chargeFor(cover, [address, key], address, 0)),
    ['fg:{ADDRESS}:by-ip:60', 'fg:{KEY}:by-key:60', 'fg:{ADDRESS}:by-key:60:unproven'],
    'a key that never worked burdens its address too',
  );
  key.provenUntil = 100;
  t.strictSame(
    keysOf(chargeFor(cover, [address, key], address, 99)),
    ['fg:{ADDRESS}:by-ip:60', 'fg:{KEY}:by-key:60'],
    'a proven one does not',
  );
  t.equal(chargeFor(cover, [null, null], address, 0), null, 'nobody is counted');
});

t.test('a charge is remembered while nothing that it depends on changes', async (t) => {
  const [cover, other] = coversOf(
    ['/a', '/b'],
    'name: by-key, route: GET /a, identifier: key, limit: 5',
    'name: other, route: GET /b, identifier: key, limit: 5',
  ) as [Cover, Cover];
  const key = new Identity('KEY');
  const home = new Identity('HOME');
  const away = new Identity('AWAY');
  const first = chargeFor(cover, [key], home, 0);
  t.equal(first?.proof, key);
  t.equal(chargeFor(cover, [key], home, 0), first, 'the same object, so that one turn asks once');
  t.strictSame(keysOf(chargeFor(cover, [key], away, 0)), [
    'fg:{KEY}:by-key:60',
    'fg:{AWAY}:by-key:60:unproven',
  ]);
  t.strictSame(keysOf(chargeFor(cover, [key], home, 0)), [
    'fg:{KEY}:by-key:60',
    'fg:{HOME}:by-key:60:unproven',
  ]);
  t.strictSame(keysOf(chargeFor(other, [key], home, 0)), [
    'fg:{KEY}:other:60',
    'fg:{HOME}:other:60:unproven',
  ]);

  key.provenUntil = 1000;
  const proven = chargeFor(cover, [key], home, 999);
  t.match(proven, { proof: null, buckets: { length: 1 } }, 'proven: another charge');
  t.equal(chargeFor(cover, [key], home, 999), proven);
  t.equal(chargeFor(cover, [key], away, 999), proven, 'from wherever it comes');
  t.not(chargeFor(other, [key], home, 999), proven, 'for these policies only');
  t.equal(chargeFor(cover, [key], home, 999), proven, 'beside those for others');
  t.match(
    chargeFor(cover, [key], home, 1000),
    { proof: key, buckets: { length: 2 } },
    'until it has to be asked again',
  );
});

t.test('of two credentials the one that has not worked yet is charged to the address', async (t) => {
  const cover = coverOf(
    '/a',
    'name: by-key, route: GET /*, identifier: key, limit: 5',
    'name: by-tenant, route: GET /*, identifier: tenant, limit: 5',
  );
  const key = new Identity('KEY');
  const tenant = new Identity('TENANT');
  const address = new Identity('ADDRESS');
  t.equal(chargeFor(cover, [key, tenant], address, 0)?.proof, key);
  key.provenUntil = 100;
  const charge = chargeFor(cover, [key, tenant], address, 0);
  t.equal(charge?.proof, tenant, 'the other one, once the first is proven');
  t.strictSame(keysOf(charge), [
    'fg:{KEY}:by-key:60',
    'fg:{TENANT}:by-tenant:60',
    'fg:{ADDRESS}:by-tenant:60:unproven',
  ]);
  t.equal(
    chargeFor(cover, [key, null], address, 0)?.proof,
    null,
    'another set of identities is another charge',
  );
});

t.test('identities that are not active are forgotten, those that are stay one object', async (t) => {
  const identities = new Identities('salt', 100);
  const active = identities.of(IP, 'active');
  const idle = identities.of(IP, 'idle');
  for (let i = 0; i < 210; i++) {
    identities.of(IP, `n${i}`);
    if (i % 50 === 0) identities.of(IP, 'active');
  }
  t.equal(identities.of(IP, 'active'), active);
  t.not(identities.of(IP, 'idle'), idle, 'forgotten');
  t.equal(identities.of(IP, 'idle').digest, idle.digest, 'and counted as before');
});
