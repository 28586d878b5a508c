/** An imported row tells how it differs from its source, and no row is lost. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { type ImportResult, importText } from '#gateway/workbench/import/import.ts';

const read = (text: string): ImportResult => importText(text, 'f', null);

const refused = ({ unsupported }: ImportResult): string[] =>
  unsupported.map(({ line, what, reason }) => `${line} ${what}: ${reason}`);

t.test('converts envoyproxy/ratelimit, and names what it cannot convert', async (t) => {
  const result = read(`domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: minute, requests_per_unit: 100 }
  - key: generic_key
    value: /api/login
    descriptors:
      - key: remote_address
        rate_limit: { unit: hour, requests_per_unit: 5 }
        shadow_mode: true
      - key: x-api-key
        rate_limit: { unit: second, requests_per_unit: 9 }
  - key: generic_key
    value: default
    rate_limit: { unit: second, requests_per_unit: 9 }
  - key: generic_key
    value: /static
    rate_limit: { unlimited: true }
  - key: remote_address
    value: 192.0.2.1
    rate_limit: { unit: day, requests_per_unit: 9 }
  - key: path
    value: /exact
    descriptors:
      - key: method
        value: POST
        descriptors:
          - { key: remote_address, rate_limit: { unit: month, requests_per_unit: 0 } }
          - key: x-user
            descriptors:
              - { key: remote_address, rate_limit: { unit: month, requests_per_unit: 3 } }
`);
  t.equal(result.from, 'ratelimit');
  const set = loadPolicies(result.text, 'f');
  t.strictSame(
    set.policies.map(({ route, identifier, limit, windowSeconds, mode }) =>
      [route.text, identifier.name, limit, windowSeconds, mode].join(' '),
    ),
    ['* * ip 100 60 enforce', '* /api/login/* ip 5 3600 shadow', '* /api/login/* x-api-key 9 1 enforce'],
  );
  t.strictSame(
    set.exclude.map(({ text }) => text),
    ['* /static/*'],
  );
  t.match(result.policies[1]?.notes, [/\/api\/login is read as this path and everything below/]);
  t.match(result.policies[2]?.notes.join(), /x-api-key is taken for the header of this name/);
  t.strictSame(
    refused(result).map((line) => line.slice(0, 60)),
    [
      '13 generic_key=default: it names no path, so its route is no',
      '19 remote_address=192.0.2.1: it applies to one client; write',
      '28 path=/exact, method=POST, remote_address: a limit of 0 ha',
      '31 path=/exact, method=POST, x-user, remote_address: it coun',
    ],
  );
  t.throws(() => importText('domain: a\ndescriptors: 5', 'f', null), { message: /descriptors is no list/ });
});

t.test('reasons name the counterpart if there is one', async (t) => {
  const policy = (rule: string): string => `kind: BackendTrafficPolicy
metadata: { name: a }
spec: { targetRef: { kind: Gateway, name: g }, rateLimit: { global: { rules: [${rule}] } } }`;
  const limit = 'limit: { requests: 5, unit: Second }';
  const distinct = 'sourceCIDR: { type: Distinct, value: 0.0.0.0/0 }';
  const cases: readonly (readonly [string, RegExp])[] = [
    [
      `{ clientSelectors: [{ ${distinct} }], cost: { request: { number: 5 } }, ${limit} }`,
      /write it with cost/,
    ],
    [`{ clientSelectors: [{ ${distinct}, queryParams: [{ name: k }] }], ${limit} }`, /\{ query: NAME \}/],
    [
      `{ clientSelectors: [{ ${distinct}, headers: [{ type: Distinct, name: x-a }] }], ${limit} }`,
      /write a list of identifiers/,
    ],
  ];
  for (const [rule, reason] of cases) t.match(refused(read(policy(rule)))[0], reason);
});
