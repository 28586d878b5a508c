/** An imported row tells how it differs from its source, and no row is lost. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { type ImportResult, importText } from '#gateway/workbench/import/import.ts';

const read = (text: string): ImportResult => importText(text, 'f', null);

/** Returns the routes with their limits and notes. */
function said({ text, policies }: ImportResult): string[] {
  loadPolicies(text, 'f');
  return policies.map(
    ({ route, limit, window, notes }) => `${route} ${limit}/${window}: ${notes.join('; ')}`,
  );
}

const refused = ({ unsupported }: ImportResult): string[] =>
  unsupported.map(({ line, what, reason }) => `${line} ${what}: ${reason}`);

t.test('NGINX: an expression that is converted to whole segments matches less', async (t) => {
  const { policies } = read(`limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;
server {
  location ~ ^/api\\.php { limit_req zone=a; }
  location ~ ^/a/[0-9]+$ { limit_req zone=a; }
  location ~ ^/b/ { limit_req zone=a; }
}`);
  t.strictSame(
    policies.map(({ route, notes }) => [route, ...notes]),
    [
      ['* /api.php/*', 'whole segments only: the regular expression matches /api.phpx too'],
      ['* /a/{p2}', 'the route matches more than the regular expression'],
      ['* /b/*'],
    ],
  );
});

const SITE = `
  server_name a;
  location / { limit_req zone=a; }
  location /static/ { }
  location /login { limit_req zone=a; }
`;
const ZONE = 'limit_req_zone $binary_remote_addr zone=a:1m rate=1r/s;\n';

t.test('NGINX: a server that only redirects does not hide exclusions', async (t) => {
  const excluded = (text: string): string[] =>
    loadPolicies(read(ZONE + text).text, 'f').exclude.map((route) => route.text);
  const redirects = [
    'server { listen 80; return 301 https://$host$request_uri; }',
    'server { listen 80; if ($host = a) { return 301 https://a; } return 404; }',
    'server { listen 80; location / { return 301 https://$host$request_uri; } location /.well-known/ { root /srv; } }',
  ];
  for (const redirect of redirects) {
    t.strictSame(excluded(`${redirect} server {${SITE}}`), ['* /static/*'], redirect);
    const [alone, both] = ['', redirect].map((more) =>
      said(read(`${ZONE}limit_req zone=a; ${more} server {${SITE}}`)),
    );
    t.strictSame(both, alone, 'a server that only redirects adds no rows and no notes');
  }
  t.strictSame(excluded(`server {${SITE}} server {${SITE.replace('server_name a', 'server_name b')}}`), [
    '* /static/*',
  ]);
  t.strictSame(excluded(`server {${SITE}} server { location /static/x { limit_req zone=a; } }`), []);
  t.strictSame(excluded(`server {${SITE}} server { limit_req zone=a; }`), []);
});

t.test('NGINX: names the counterpart of lists by geo and map', async (t) => {
  const told = refused(
    read(`geo $limited { default 1; 10.0.0.0/8 0; }
map $limited $key { 0 ""; 1 $binary_remote_addr; }
limit_req_zone $key zone=a:1m rate=1r/s;
server { limit_req zone=a; }`),
  );
  t.match(told[0], /\$key comes from a map.*policy by address.*allow/);
});

t.test('Kong: nested routes, disabled plugins, files without a version', async (t) => {
  const file = `services:
  - name: shop
    routes:
      - name: api
        paths: [/api]
        plugins:
          - { name: rate-limiting, config: { minute: 10, limit_by: ip, policy: redis } }
      - { name: status, paths: [/api/status] }
      - { name: posts, paths: [/api/posts], methods: [POST] }
      - { name: other, paths: [/other] }
    plugins:
      - { name: rate-limiting, enabled: false, config: { minute: 5 } }
`;
  const result = read(file);
  t.equal(result.from, 'kong');
  t.strictSame(said(result), [
    '* /api/* 10/1m: counts route status of line 8 too, which Kong does not; counts route posts of line 9 too, which Kong does not',
  ]);
  t.strictSame(refused(result), ['12 rate-limiting of service shop: it is switched off (enabled: false)']);
});

t.test('Kong: limits of consumers become plans', async (t) => {
  const result = read(`_format_version: "3.0"
plugins:
  - { name: rate-limiting, config: { minute: 10, hour: 100, limit_by: ip, policy: redis } }
consumers:
  - username: alice
    plugins: [{ name: rate-limiting, config: { minute: 50, policy: redis } }]
  - username: bob
    groups: [{ name: gold }]
  - username: carol
    groups: [{ name: gold }]
    plugins: [{ name: rate-limiting, config: { minute: 70, second: 5 } }]
consumer_groups:
  - name: gold
    plugins: [{ name: rate-limiting, config: { minute: 60, policy: redis } }]
`);
  const set = loadPolicies(result.text, 'f');
  t.equal(set.planHeader, 'x-consumer-username');
  t.strictSame(
    set.policies.map(({ limit, windowSeconds, overrides }) => [
      limit,
      windowSeconds,
      Object.fromEntries(overrides?.plans ?? []),
    ]),
    [
      [10, 60, { alice: 50, bob: 60, carol: 70 }],
      [100, 3600, {}],
    ],
  );
  t.match(result.text, /in x-consumer-username: set GATEWAY_TRUSTED_PROXIES/);
  t.strictSame(refused(result), [
    '11 second of rate-limiting of consumer carol: no policy for everybody has a limit for each second',
  ]);
});

t.test('Traefik: a middleware that no router of the file uses applies everywhere', async (t) => {
  const result = read(
    'http: { middlewares: { slow: { rateLimit: { average: 5, burst: 7, sourceCriterion: { requestHeaderName: X-Key } } } } }',
  );
  t.strictSame(said(result), [
    '* * 5/1s: no router of this file uses it, so it applies to every path: write its route',
  ]);
});

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
