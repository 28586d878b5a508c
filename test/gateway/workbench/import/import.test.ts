/** Files of other products become valid policy files, and everything that is lost is reported. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';
import { importText } from '#gateway/workbench/import/import.ts';
import { projectRoot } from '#test/support/process.ts';

function importFixture(name: string): ReturnType<typeof importText> {
  return importText(readFileSync(join(projectRoot, 'test/fixtures/import', name), 'utf8'), name, null);
}

/** Returns route, identifier, limit, window and all values that differ from the defaults. */
function rowsOf(text: string): unknown[] {
  return loadPolicies(text, 'imported.yaml').policies.map((policy) => {
    const { route, identifier, limit, windowSeconds, bucket, name, mode } = policy;
    const quota = `${limit} in ${windowSeconds}${policy.burst === null ? '' : `, ${policy.burst} at once`}`;
    const more = [...(bucket === name ? [] : [`bucket ${bucket}`]), ...(mode === 'enforce' ? [] : [mode])];
    return [name, route.text, identifier.name, quota, ...more];
  });
}

t.test('converts BackendTrafficPolicy and HTTPRoute of Envoy Gateway', async (t) => {
  const { from, text, unsupported, policies, limits } = importFixture('envoy.yaml');
  t.equal(from, 'envoy');
  const days = '10000 in 2592000';
  t.strictSame(rowsOf(text), [
    ['limits-api-v1-management', '* /api/v1/management/*', 'x-api-key', '100 in 60'],
    ['limits-api-v1-client-p4-responses', 'POST /api/v1/client/{p4}/responses', 'ip', '50 in 3600', 'shadow'],
    [
      'limits-api-v1-client-p4-displays',
      'POST /api/v1/client/{p4}/displays',
      'ip',
      '50 in 3600',
      'bucket limits-api-v1-client-p4-responses',
      'shadow',
    ],
    ['limits-api-v1-management-2', '* /api/v1/management/*', 'ip', days],
    ['limits-api-v1-client', 'POST /api/v1/client/*', 'ip', days, 'bucket limits-api-v1-management-2'],
    ['limits-upload', 'PUT /upload', 'ip', days, 'bucket limits-api-v1-management-2'],
    ['limits-api-v1-management-3', '* /api/v1/management/*', 'everyone', '5000 in 1'],
    ['limits-api-v1-client-2', 'POST /api/v1/client/*', 'everyone', '5000 in 1'],
    ['limits-upload-2', 'PUT /upload', 'everyone', '5000 in 1'],
  ]);
  t.strictSame(limits, { found: 9, carriedOver: 4, lost: 5 });
  t.match(text, /^# 9 limits found, 4 carried over, 5 lost\.\n/);
  t.strictSame(
    unsupported.map(({ line, reason }) => `${line} ${reason.slice(0, 40)}`),
    [
      '16 its match by headers has no counterpart:',
      '44 it applies to some values of the header ',
      '47 it counts a client by several things at ',
      '51 it applies to clients in 10.0.0.0/8 only',
      '56 no route says the same as the path .*\\.p',
      '58 its cost is not carried over: write it w',
    ],
  );
  t.match(policies[3]?.notes, [
    'with IPv6, a /64 network is one client, not a single address',
    'a month is 30 days here',
  ]);
});

t.test('converts an Envoy list as kubectl prints it, for a whole Gateway, counted locally', async (t) => {
  const { text, policies } = importText(
    JSON.stringify({
      kind: 'List',
      items: [
        {
          kind: 'BackendTrafficPolicy',
          metadata: { name: 'all' },
          spec: {
            targetRef: { kind: 'Gateway', name: 'edge' },
            rateLimit: {
              local: {
                rules: [
                  {
                    clientSelectors: [{ sourceCIDR: { type: 'Distinct', value: '::/0' } }],
                    limit: { requests: 10, unit: 'Second' },
                  },
                ],
              },
            },
          },
        },
      ],
    }),
    'list.json',
    null,
  );
  t.strictSame(rowsOf(text), [['all-all', '* *', 'ip', '10 in 1, 10 at once']]);
  t.match(policies[0]?.notes.at(-1), /each Envoy counts for itself/);
});

t.test(
  'the written file has no warnings but of limits that one client can use up, as in the fixture',
  async (t) => {
    const { text } = importFixture('envoy.yaml');
    const warnings = warningsOf(loadPolicies(text, 'envoy.yaml'), placesIn(text));
    t.strictSame(
      warnings.map(({ message }) => message),
      ['limits-api-v1-management-3', 'limits-api-v1-client-2', 'limits-upload-2'].map(
        (name) => `one client can use 5000 of the 5000 requests that all clients of ${name} share`,
      ),
    );
  },
);

t.test('a rule that names its path needs no route object', async (t) => {
  const rule = (path: string) => `kind: BackendTrafficPolicy
metadata: { name: a }
spec:
  targetSelectors: [{ kind: HTTPRoute, matchLabels: { a: b } }]
  rateLimit: { global: { rules: [{ clientSelectors: [{ sourceCIDR: { type: Exact, value: 0.0.0.0/0 }${path} }], limit: { requests: 5, unit: Minute } }] } }`;
  const bound = importText(rule(', path: { value: /login }'), 'f', null);
  t.strictSame(rowsOf(bound.text), [['a-login', '* /login/*', 'everyone', '5 in 60']]);
  t.strictSame(bound.limits, { found: 1, carriedOver: 1, lost: 0 });
  const unbound = importText(rule(''), 'f', null);
  t.match(unbound.unsupported, [{ reason: 'it targets no route with a path' }]);
  t.strictSame(unbound.limits, { found: 1, carriedOver: 0, lost: 1 });
  const named = rule(', path: { value: /login }').replace(
    /targetSelectors.*/,
    'targetRef: { kind: HTTPRoute, name: r }',
  );
  t.strictSame(importText(named, 'f', null).policies[0]?.notes, []);
});

t.test('names and texts cannot break out of their YAML strings', async (t) => {
  const rule = (header: string, path: string) => ({
    clientSelectors: [
      { headers: [{ type: 'Distinct', name: header }], path: { type: 'Exact', value: path } },
    ],
    limit: { requests: 5, unit: 'Minute' },
  });
  const { text } = importText(
    JSON.stringify({
      kind: 'BackendTrafficPolicy',
      metadata: { name: 'ünïcode\nexclude: ["* *"]\n#\u2028- x' },
      spec: {
        targetRef: { kind: 'Gateway', name: 'a\nexclude: ["* *"]' },
        rateLimit: {
          global: {
            rules: [rule('X-"A', '/x'), rule('X-B', '/a b/{x}'), rule('X-B', `/${'é'.repeat(600)}`)],
          },
        },
      },
    }),
    'evil\nversion: 2\n.json',
    null,
  );
  const { policies, exclude } = loadPolicies(text, 'p.yaml');
  t.strictSame(exclude, []);
  t.strictSame(
    policies.map(({ name, route }) => `${name} ${route.text}`),
    ['n-code-exclude-x-a-20b-7bx-7d * /a%20b/%7Bx%7D'],
  );
  t.match(text, /x-"a is not the name of a header/);
});

t.test('a malformed file is reported with its line', async (t) => {
  const cases: readonly (readonly [text: string, pattern: RegExp])[] = [
    ['hello: world', /none of Envoy Gateway, envoyproxy\/ratelimit; the documentation shows/],
    ['server { listen 80; }', /none of|not valid YAML/],
    ['a: [', /line \d+ is not valid YAML/],
    ['kind: "3"\nkind: "3"', /line 2 is not valid YAML/],
    [
      `a: &a [x,x,x,x,x,x,x,x,x]
b: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]
c: &c [*b,*b,*b,*b,*b,*b,*b,*b,*b]
d: [*c,*c,*c,*c,*c,*c,*c,*c,*c]`,
      /aliases/,
    ],
    ['kind: BackendTrafficPolicy\nspec: {{- toYaml .Values.spec | nindent 2 }}', /"helm template"/],
  ];
  for (const [text, pattern] of cases)
    t.throws(() => importText(text, 'f', null), { name: 'Error', message: pattern }, text.slice(0, 40));
  t.throws(() => importText('kind: Service', 'f', 'envoy'), { message: 'it has no BackendTrafficPolicy' });
  t.throws(() => importText('#'.repeat(5_000_000), 'f', 'envoy'), { message: /more than 4 MiB/ });
});

t.test('headers with an address become the client address', async (t) => {
  const { text, policies } = importText(
    `kind: BackendTrafficPolicy
metadata: { name: a }
spec:
  targetRef: { kind: Gateway, name: g }
  rateLimit: { global: { rules: [{ clientSelectors: [{ headers: [{ type: Distinct, name: X-Forwarded-For }] }], limit: { requests: 1, unit: Second } }] } }`,
    'f',
    null,
  );
  t.strictSame(rowsOf(text), [['a-all', '* *', 'ip', '1 in 1']]);
  t.match(policies[0]?.notes, [/in place of x-forwarded-for: set GATEWAY_TRUSTED_PROXIES/]);
});
