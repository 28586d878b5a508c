/** Tests overrides: which clients they apply to, and a very large file. */
import t from 'tap';
import { limitFor } from '#gateway/policy/clients.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { ClientAddress } from '#shared/client-address.ts';

const DIGEST = 'AAAAABAAAAC_____AAAAAA';
const NOBODY = 'BBBBBBBBBBBBBBBBBBBBBA';
const file = (more: string): string => `version: 1
identifiers:
  ip: { source: client-address }
plan: { header: X-Plan }
policies:
  - { name: a, route: GET /a, identifier: ip, limit: 5, window: 1m, ${more} }
  - { name: b, route: GET /b, identifier: ip, limit: 5, window: 1m, ${more} }
`;
const bytes = (address: string) => new ClientAddress(address, '', { kind: 'none' }).bytes;

t.test('an overrides file: comments, blank lines, and each mistake with its line', async (t) => {
  const load = (text: string) => loadPolicies(file('overridesFile: limits.txt'), 'p.yaml', () => text);
  const set = load(`# who, limit\r\n\r\nplan gold 10\n  address 10.0.0.0/8\t20  \ndigest ${DIGEST} 30`);
  const [first] = set.policies;
  t.match(first?.overrides, {
    clients: { plans: new Map([['gold', 10]]), networks: { size: 1 }, digests: new Map([[DIGEST, 30]]) },
  });
  t.equal(first?.overrides, set.policies[1]?.overrides, 'the file is read once');
  t.not(set.version, load('plan gold 11\n').version);
  const bad = [
    ['plan gold', /^p\.yaml:6:\d+: limits\.txt:1: "plan gold" is not an override; write address CIDR LIMIT/],
    ['plan gold 0', /limits\.txt:1: the limit is 0; write a whole number from 1/],
    ['plan gold 1e3', /the limit is 1e3/],
    ['plan gold 9999999999', /the limit is 9999999999/],
    ['key gold 1', /is not an override/],
    ['address 10.0.0.0/33 1', /neither an address nor a network/],
    ['digest gold 1', /is not a digest/],
    ['plan a 1\nplan b 1\nplan a 2', /limits\.txt:3: plan a appears twice/],
  ] as const;
  for (const [text, message] of bad) t.throws(() => load(text), { message }, text);
  try {
    load('x\n'.repeat(50));
    t.fail('the file was accepted');
  } catch (error) {
    t.equal((error as Error).message.split('\n').length, 10, 'the first ten mistakes');
  }
});

t.test('a hundred thousand lines, at most 8 MiB', async (t) => {
  const line = (i: number): string => `address 10.${i >> 16}.${(i >> 8) & 255}.${i & 255} ${i + 1}\n`;
  const text = Array.from({ length: 100_000 }, (_, i) => line(i)).join('');
  const load = (text: string) => loadPolicies(file('overridesFile: limits.txt'), 'p.yaml', () => text);
  const [a] = load(text).policies;
  t.equal(a?.overrides?.clients.networks.size, 100_000);
  t.equal(
    a === undefined ? 0 : limitFor(a, NOBODY, { address: bytes('10.1.0.2'), plan: null, words: [] }),
    65_539,
  );
  t.throws(() => load('#'.repeat(8_388_609)), { message: /more than 8388608 bytes/ });
});
