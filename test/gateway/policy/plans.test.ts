/** The file of plans: which clients it matches, and its mistakes. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { ClientAddress } from '#shared/client-address.ts';

const DIGEST = 'AAAAABAAAAC_____AAAAAA';
const NOBODY = 'BBBBBBBBBBBBBBBBBBBBBA';
const FILE = `version: 1
plans: { file: plans.txt }
identifiers:
  ip: { source: client-address }
policies:
  - { name: a, route: GET /a, identifier: ip, limit: 5, window: 1m, overrides: [{ for: { plan: gold }, limit: 9 }] }
`;
const load = (text: string) => loadPolicies(FILE, 'p.yaml', () => text);
const bytes = (address: string) => new ClientAddress(address, '', { kind: 'none' }).bytes;

t.test('a digest takes precedence over a network, a longer prefix over a shorter one', async (t) => {
  const { plans } = load(
    `# who, plan\r\n\r\n${DIGEST} gold\n10.0.0.0/8\tsilver\n  10.1.0.0/16 bronze  \n2001:db8::/32 six`,
  );
  if (plans === null) return t.fail('no plans');
  t.strictSame([plans.digests.size, plans.networks.size], [1, 3]);
  const cases = [
    [[NOBODY, DIGEST], '10.1.0.1', 'gold'],
    [[NOBODY], '10.1.0.1', 'bronze'],
    [[], '10.2.0.1', 'silver'],
    [[], '2001:db8::1', 'six'],
    [[NOBODY], '192.0.2.1', null],
    [[NOBODY], 'garbage', null],
  ] as const;
  for (const [digests, address, plan] of cases)
    t.equal(plans.find(digests, bytes(address)) ?? null, plan, address);
  t.equal(plans.find([DIGEST], null), 'gold', 'without an address');
});

t.test('each mistake with its line', async (t) => {
  const bad = [
    ['10.0.0.1', /^p\.yaml:2:16: plans\.txt:1: "10\.0\.0\.1" names no client and plan; write DIGEST PLAN/],
    ['10.0.0.1 gold 7', /names no client and plan/],
    ['10.0.0.1 gold+', /names no client and plan/],
    ['10.0.0.0/33 gold', /neither an address nor a network/],
    ['key gold', /neither an address nor a network/],
    ['10.0.0.1 a\n\n10.0.0.1 b', /plans\.txt:3: address 10\.0\.0\.1 appears twice/],
    [`${DIGEST} a\n${DIGEST} a`, /plans\.txt:2: digest \S+ appears twice/],
    [`10.0.0.1 ${'a'.repeat(65)}`, /at most 64/],
  ] as const;
  for (const [text, message] of bad) t.throws(() => load(text), { message }, text);
  t.throws(() => loadPolicies(FILE, 'p.yaml', () => '#'.repeat(8_388_609)), { message: /8388608 bytes/ });
});
