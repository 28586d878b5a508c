/** Tests files of overrides. Their mistakes are in named-files.md. */
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

t.test('an overrides file: comments and blank lines', async (t) => {
  const load = (text: string) => loadPolicies(file('overridesFile: limits.txt'), 'p.yaml', () => text);
  const set = load(`# who, limit\r\n\r\nplan gold 10\n  address 10.0.0.0/8\t20  \ndigest ${DIGEST} 30`);
  const [first] = set.policies;
  t.match(first?.overrides, {
    clients: { plans: new Map([['gold', 10]]), networks: { size: 1 }, digests: new Map([[DIGEST, 30]]) },
  });
  t.equal(first?.overrides, set.policies[1]?.overrides, 'the file is read once');
  t.not(set.version, load('plan gold 11\n').version);
});

t.test('a hundred thousand lines', async (t) => {
  const line = (i: number): string => `address 10.${i >> 16}.${(i >> 8) & 255}.${i & 255} ${i + 1}\n`;
  const text = Array.from({ length: 100_000 }, (_, i) => line(i)).join('');
  const [a] = loadPolicies(file('overridesFile: limits.txt'), 'p.yaml', () => text).policies;
  t.equal(a?.overrides?.clients.networks.size, 100_000);
  t.equal(
    a === undefined ? 0 : limitFor(a, NOBODY, { address: bytes('10.1.0.2'), plan: null, words: [] }),
    65_539,
  );
});
