/** Mistakes of the file of plans. Which clients it matches is in test/policies/plans.yaml. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';

const DIGEST = 'AAAAABAAAAC_____AAAAAA';
const FILE = `version: 1
plans: { file: plans.txt }
identifiers:
  ip: { source: client-address }
policies:
  - { name: a, route: GET /a, identifier: ip, limit: 5, window: 1m, overrides: [{ for: { plan: gold }, limit: 9 }] }
`;
const load = (text: string) => loadPolicies(FILE, 'p.yaml', () => text);

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
