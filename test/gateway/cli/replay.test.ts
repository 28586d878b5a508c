/** Tests `floodgate replay`: it says what a policy file would have decided about the requests of a log. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { gzipSync } from 'node:zlib';
import t, { type Test } from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { floodgate, floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }, { bearer: fbk_ }] }
exclude: [GET /health]
policies:
  - { name: login, route: POST /login, identifier: ip, limit: 2, window: 1m }
  - { name: items, route: "GET /items/*", identifier: api-key, limit: 1, window: 1m }
  - { name: all, route: "* /*", identifier: ip, limit: 3, window: 1m, mode: shadow }
`;

/** A policy file with these rows, which count by address. */
const byAddress = (...rows: readonly string[]): string =>
  ['version: 1', 'identifiers: { ip: { source: client-address } }', 'policies:']
    .concat(rows.map((row) => `  - { identifier: ip, ${row} }`))
    .join('\n');

/** Makes a folder with a policy file and logs. */
function folderOf(
  t: Test,
  logs: Readonly<Record<string, readonly string[]>> = {},
  policies = POLICIES,
): string {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), policies);
  for (const [name, lines] of Object.entries(logs))
    writeFileSync(join(cwd, name), lines.map((line) => `${line}\n`).join(''));
  return cwd;
}

async function replay(cwd: string, ...args: string[]) {
  const { code, stdout, stderr } = await floodgateCommand(['replay', ...args, '--json'], { cwd });
  return { code, stderr, ...(stdout === '' ? {} : JSON.parse(stdout)) };
}

function nginx(second: number, address: string, request: string, status = 200): string {
  const time = new Date(Date.UTC(2026, 10, 22, 8, 0, second)).toISOString().slice(11, 19);
  return `${address} - - [22/Nov/2026:${time} +0000] "${request} HTTP/1.1" ${status} 2 "-" "a"`;
}

/** @param ts seconds @param more replaces members of the line and of its request */
function caddy(
  ts: number,
  { request, ...more }: { readonly request?: object; readonly [name: string]: unknown } = {},
) {
  const whole = { remote_ip: '192.0.2.1', method: 'GET', uri: '/items/1', headers: {}, ...request };
  return JSON.stringify({ ts, duration: 0, status: 200, ...more, request: whole });
}

const at = (second: number): number => Date.UTC(2026, 10, 22, 8, 0, second) / 1000;
const repeated = (times: number, ...line: Parameters<typeof nginx>): readonly string[] =>
  Array.from({ length: times }, () => nginx(...line));

t.test('NGINX: decides by address, not by key, with the times of the log', async (t) => {
  const cwd = folderOf(t);
  const lines = [
    ...Array.from({ length: 4 }, (_, i) => nginx(10 + i, '192.0.2.1', 'POST /login', 401)),
    nginx(15, '192.0.2.2', 'POST /login/', 401),
    nginx(61, '192.0.2.1', 'POST /login', 401),
    nginx(62, '192.0.2.1', 'GET /items/1'),
    nginx(63, '192.0.2.1', 'GET /health'),
    nginx(64, '192.0.2.1', 'GET /a%00b', 400),
    'nonsense',
  ];
  writeFileSync(join(cwd, 'access.log.gz'), gzipSync(`${lines.join('\n')}\n`));
  const result = await replay(cwd, 'access.log.gz');
  t.match(result, {
    code: 0,
    formats: ['nginx'],
    lines: 10,
    unreadable: 1,
    unreadableLines: [{ file: 'access.log.gz', line: 10, text: 'nonsense' }],
    from: '2026-11-22T08:00:10.000Z',
    to: '2026-11-22T08:01:04.000Z',
    requests: 9,
    allowed: 5,
    denied: 2,
    uncovered: 1,
    malformed: 1,
    unknown: 0,
    notes: ['policies by api-key were skipped for 1 request, because the log does not have it'],
  });
  t.ok(result.linesPerSecond > 0);
  const [login, items, all] = result.policies;
  t.match(login, {
    name: 'login',
    line: 7,
    allowed: 4,
    denied: 2,
    identities: 2,
    identitiesDenied: 1,
    isEstimate: false,
    firstDeniedAt: '2026-11-22T08:00:12.000Z',
    mostDenied: [{ identity: /^[\w-]{22}$/, count: 2 }],
  });
  t.match(items, { allowed: 0, denied: 0, unknown: 1, identities: 0, firstDeniedAt: null });
  t.match(all, { allowed: 5, denied: 0, shadowDenied: 0, identities: 2 });
});

t.test('a client that left counts both as failure and as success', async (t) => {
  const lines = repeated(5, 10, '192.0.2.1', 'POST /login', 499);
  for (const count of ['failure', 'success']) {
    const policies = byAddress(`name: all, route: "* /*", limit: 2, window: 1m, count: ${count}`);
    const cwd = folderOf(t, { 'a.log': lines }, policies);
    t.match(await replay(cwd, 'a.log'), { code: 0, allowed: 2, denied: 3 }, count);
  }
});

t.test('reports what a shadow policy would deny, and a marking one mark', async (t) => {
  const lines = Array.from({ length: 5 }, (_, i) => nginx(i, '2001:db8::7', `GET /pages/${i}`));
  const firstDeniedAt = '2026-11-22T08:00:03.000Z';
  for (const [mode, reported] of [
    ['shadow', { shadowDenied: 2, firstDeniedAt }],
    ['mark', { shadowDenied: 0, marked: 2, identitiesDenied: 0, firstDeniedAt: null }],
  ] as const) {
    const cwd = folderOf(t, { 'a.log': lines }, POLICIES.replace('mode: shadow', `mode: ${mode}`));
    const result = await replay(cwd, 'a.log');
    t.match(result, { requests: 5, allowed: 5, denied: 0 });
    t.match(result.policies[2], { allowed: 3, denied: 0, ...reported }, mode);
  }
});

t.test('uses header fields of a log, and does not guess hidden ones', async (t) => {
  const key = { 'X-Api-Key': ['one'], 'Content-Length': ['5'], 'Transfer-Encoding': ['chunked'] };
  const lines = [
    key,
    { ...key, 'X-Forwarded-For': ['198.51.100.1'] },
    { 'X-Api-Key': ['two'] },
    { Authorization: ['REDACTED'] },
    {},
    { 'X-Api-Key': ['three'], Authorization: ['Bearer fbk_four'] },
  ].map((headers, i) =>
    caddy(at(i + 1), { request: { remote_ip: '10.0.0.1', client_ip: '192.0.2.1', headers } }),
  );
  const cwd = folderOf(t, { 'caddy.log': lines });
  const result = await replay(cwd, 'caddy.log');
  t.match(result, { requests: 6, allowed: 3, denied: 2, malformed: 1, unknown: 0 });
  t.match(result.policies[1], { allowed: 1, denied: 2, unknown: 1, identities: 2 });
  t.match(result.notes, [
    /by api-key were skipped for 1 request/,
    /X-Forwarded-For, which 1 request had.*--trusted-proxies/,
  ]);
  t.equal(result.policies[2].identities, 1, 'the address that Caddy logged');
  const trusting = await replay(cwd, 'caddy.log', '--trusted-proxies', '10.0.0.0/8');
  t.equal(trusting.policies[2].identities, 2, 'the address in X-Forwarded-For of a trusted proxy');
  t.strictSame(trusting.notes.length, 1);
});

t.test('Envoy: names the field that has a header', async (t) => {
  const cwd = folderOf(t);
  const fixture = new URL('../../fixtures/logs/envoy.json.log', import.meta.url);
  writeFileSync(join(cwd, 'envoy.log'), readFileSync(fixture));
  t.match(await replay(cwd, 'envoy.log'), { requests: 3, policies: [{}, { unknown: 2 }] });
  const told = await replay(cwd, 'envoy.log', '-H', 'X-Api-Key=api_key', '-H', 'authorization=auth');
  t.match(told.policies[1], { allowed: 1, unknown: 0 });
});

t.test('two files compared: whom the edit affects', async (t) => {
  const cwd = folderOf(t, { 'a.log': [1, 2, 3].map((second) => nginx(second, '192.0.2.1', 'POST /login')) });
  writeFileSync(
    join(cwd, 'edited.yaml'),
    POLICIES.replace('limit: 2', 'limit: 1').replace('window: 1m', 'window: 1h'),
  );
  t.match(await replay(cwd, 'a.log', '--file', 'edited.yaml', '--against', 'policies.yaml'), {
    against: 'policies.yaml',
    denied: 2,
    newlyDenied: 1,
    newlyAllowed: 0,
    identitiesNewlyDenied: 1,
    mostNewlyDenied: [{ count: 1 }],
  });
  const back = await replay(cwd, 'a.log', '--against', 'edited.yaml');
  t.match(back, { denied: 1, newlyDenied: 0, newlyAllowed: 1 });
  const args = ['replay', 'a.log', '--file', 'edited.yaml', '--against', 'policies.yaml'];
  const people = await floodgateCommand(args, { cwd });
  t.match(people.stdout, /edited\.yaml denies 1 request of 1 client more/);
});

t.test('our own log: digests are identities, and unknown ones are reported', async (t) => {
  const cwd = folderOf(t);
  const fixture = new URL('../../fixtures/logs/floodgate.log', import.meta.url);
  writeFileSync(join(cwd, 'own.log'), readFileSync(fixture));
  const result = await replay(cwd, 'own.log');
  t.match(result, {
    formats: ['floodgate'],
    requests: 5,
    allowed: 4,
    denied: 0,
    malformed: 1,
  });
  t.match(result.policies[1], { allowed: 1, unknown: 0 });
  writeFileSync(join(cwd, 'wider.yaml'), POLICIES.replace('GET /items/*', 'GET,POST /*'));
  const wider = await replay(cwd, 'own.log', '--file', 'wider.yaml');
  t.match(wider.policies[1], { allowed: 1, unknown: 3 }, 'the log does not tell whether there was a key');
  const told = readFileSync(fixture, 'utf8').replaceAll(
    '"policies":["login"],',
    '"policies":["login"],"uncounted":["items"],',
  );
  // Another program may have written the fields anew.
  for (const text of [told, told.replaceAll('{"time":', '{ "time":')]) {
    writeFileSync(join(cwd, 'told.log'), text);
    const known = await replay(cwd, 'told.log', '--file', 'wider.yaml');
    t.match(known.policies[1], { allowed: 1, unknown: 1 }, 'the gateway looked for a key, and found none');
  }
});

t.test('prints the digests of the gateway if its secret is set', async (t) => {
  const cwd = folderOf(t, { 'a.log': repeated(3, 1, '192.0.2.1', 'POST /login') });
  const env = { GATEWAY_IDENTITY_SECRET: 'a secret of some length' };
  const { stdout } = await floodgateCommand(['replay', 'a.log', '--json'], { cwd, env });
  const [{ mostDenied }] = JSON.parse(stdout).policies;
  const ip = { name: 'ip', kind: 'address', ipv6Prefix: 64 } as const;
  t.equal(mostDenied[0].identity, new Digester(env.GATEWAY_IDENTITY_SECRET).identify(ip, '192.0.2.1').digest);
});

t.test('reads - as standard input', async (t) => {
  const cwd = folderOf(t, { 'a.log': [nginx(1, '192.0.2.1', 'POST /login')] });
  const input = nginx(2, '192.0.2.1', 'POST /login');
  const { stdout } = await floodgate(['replay', 'a.log', '-', '--json'], { cwd, input });
  t.match(JSON.parse(stdout), { requests: 2, to: '2026-11-22T08:00:02.000Z' });
});

t.test('wrong arguments', async (t) => {
  const logs = {
    'strange.log': ['what is this'],
    'empty.log': [],
    'a.log': [nginx(1, '192.0.2.1', 'GET /')],
  };
  const cwd = folderOf(t, logs);
  t.match(await replay(cwd, 'strange.log'), {
    code: 2,
    stderr: /no access log that is known.*--format floodgate\|nginx/,
  });
  t.match(await replay(cwd, 'strange.log', '--format', 'nginx'), {
    code: 1,
    stderr: /line 1 of strange\.log reads: what is this/,
  });
  t.match(await replay(cwd, 'empty.log'), { code: 1, stderr: /no request/ });
  t.match(await replay(cwd, 'none.log'), { code: 3, stderr: /none\.log cannot be read \(ENOENT\)/ });
  t.match(await replay(cwd, '.'), { code: 3, stderr: /is a folder/ });
  t.match(await replay(cwd, 'a.log', '--file', 'none.yaml'), { code: 3 });
  t.match(await replay(cwd, 'a.log', '--trusted-proxies', 'x'), {
    code: 2,
    stderr: /--trusted-proxies.*neither/,
  });
  t.match(await replay(cwd, 'a.log', '-H', 'x'), { code: 2, stderr: /NAME=FIELD/ });
  t.match(await replay(cwd, '-', '-'), { code: 2, stderr: /only once/ });
  t.match(await replay(cwd), { code: 2 });
});

t.test(
  'our own log: applies lists by digest and overrides by plan, and names those by address',
  async (t) => {
    const digest = (name: string): string => name.padEnd(22, 'A');
    const policies = `version: 1
plan: { header: x-plan }
identifiers:
  ip: { source: client-address }
allow: [{ digest: ${digest('friend')} }]
deny: [{ digest: ${digest('enemy')} }, { route: GET /closed }]
policies:
  - name: items
    route: GET /items
    identifier: ip
    limit: 1
    window: 1h
    overrides: [{ for: { plan: gold }, limit: 3 }, { for: { address: 10.0.0.0/8 }, limit: 9 }]
`;
    const line = (who: string, plan: string | null): string =>
      JSON.stringify({
        time: '2026-11-22T08:23:01.123Z',
        method: 'GET',
        path: '/items',
        status: 200,
        decision: 'allow',
        id: null,
        policies: ['items'],
        policy: 'items',
        identities: { ip: digest(who) },
        address: digest(who),
        unproven: [],
        proves: false,
        plan,
      });
    const lines = ['friend', 'enemy', 'usual', 'gold'].flatMap((who) =>
      Array.from({ length: 5 }, () => line(who, who === 'gold' ? 'gold' : null)),
    );
    lines.push(line('friend', null).replace('/items', '/closed'));
    t.match(await replay(folderOf(t, { 'own.log': lines }, policies), 'own.log'), {
      code: 0,
      requests: 21,
      uncovered: 5,
      denied: 5 + 4 + 2 + 1,
      allowed: 1 + 3,
      notes: [/^these are ignored, .*: overrides and lists by address or User-Agent$/],
    });
  },
);

t.test('what a log does not have is ignored or counts its reserve, and a note says so', async (t) => {
  const cases: readonly (readonly [string, readonly string[], allowed: number, denied: number, RegExp])[] = [
    [
      'POST /sent',
      ['route: POST /sent, limit: 3, cost: body-bytes'],
      ...([3, 2] as const),
      /^each request under row0 costs 1, because the log does not have what it costs$/,
    ],
    [
      'POST /ai',
      ['route: POST /ai, limit: 1000, cost: { replyHeader: X-Tokens, reserve: 400 }'],
      ...([2, 3] as const),
      /^each request under row0 costs 400, its reserve/,
    ],
    [
      'GET /a',
      ['route: GET /a, hosts: [shop.test, log], limit: 1', 'route: GET /a, limit: 4'],
      ...([4, 1] as const),
      /^these are ignored, because the log does not show enough: hosts$/,
    ],
    [
      'GET /slow',
      ['route: GET /slow, concurrency: 1'],
      ...([5, 0] as const),
      /^these are ignored, because the log does not show enough: concurrency$/,
    ],
  ];
  for (const [request, rows, allowed, denied, note] of cases) {
    const policies = byAddress(
      ...rows.map((row, i) => `name: row${i}, ${row}${row.includes('concurrency') ? '' : ', window: 366d'}`),
    );
    const cwd = folderOf(t, { 'nginx.log': repeated(5, 10, '192.0.2.1', request) }, policies);
    t.match(await replay(cwd, 'nginx.log'), { allowed, denied, notes: [note] }, request);
  }
});

t.test(
  'bytes of replies as the cost: none of HEAD and 304, and the reserve if the log denied it',
  async (t) => {
    const row = 'name: files, route: GET /files, limit: 1000, window: 366d, cost: { reply-bytes: 10 }';
    const line = (method: string, status: number, size: number): string =>
      caddy(at(10), { request: { method, uri: '/files' }, status, size });
    // 990 bytes are used, so one request with its reserve has room, and the next one has not.
    const lines = [
      line('GET', 200, 490),
      line('GET', 404, 500),
      ...[line('HEAD', 200, 90), line('GET', 304, 90)],
      line('GET', 200, 10),
      line('GET', 200, 1),
    ];
    const cwd = folderOf(t, { 'access.log': lines }, byAddress(row));
    const notes = [/each request under files costs the bytes of its reply/];
    t.match(await replay(cwd, 'access.log'), { requests: 6, allowed: 5, denied: 1, notes });
    // What the application would have sent is not known.
    const denied = JSON.stringify({
      ...{ time: '2026-11-22T08:00:10.000Z', method: 'GET', path: '/files', status: 429, decision: 'deny' },
      ...{ policies: ['files'], identities: { ip: 'A'.repeat(22) }, address: 'A'.repeat(22), bytes: 90 },
    });
    const own = folderOf(t, { 'own.log': Array.from({ length: 101 }, () => denied) }, byAddress(row));
    t.match(await replay(own, 'own.log'), { allowed: 100, denied: 1 });
  },
);

t.test('--routes: the busiest routes, with or without a policy, and a limit for each', async (t) => {
  const lines = [
    // Nine clients make one or two requests in a minute, one makes forty.
    ...Array.from({ length: 9 }, (_, i) => nginx(1, `192.0.2.${i}`, `GET /things/${i}`)),
    ...Array.from({ length: 4 }, (_, i) => nginx(2, `192.0.2.${i}`, `HEAD /things/${i}?x=1`)),
    ...Array.from({ length: 40 }, (_, i) => nginx(3, '198.51.100.1', `GET /things/${i}/`)),
    nginx(70, '192.0.2.1', 'GET /things/new'),
    nginx(72, '192.0.2.1', 'OPTIONS /things/1'),
    nginx(73, '192.0.2.1', 'GET /a%00b'),
  ];
  const cwd = folderOf(t, { 'access.log': lines });
  const { routes } = await replay(cwd, 'access.log', '--routes');
  t.match(routes, [
    { route: 'GET /things/{id}', identifier: 'ip', requests: 53, identities: 10 },
    { route: 'GET /things/new', requests: 1, max: 1, limit: 1 },
  ]);
  t.match(routes[0], { p50: 1, p95: 40, p99: 40, max: 40, limit: 40 });
  t.equal(routes.length, 2, 'preflights and malformed requests have no route');
  t.notOk('routes' in (await replay(cwd, 'access.log')));
  const { stdout } = await floodgateCommand(['replay', 'access.log', '--routes'], { cwd });
  t.match(stdout, /GET \/things\/\{id\} +ip +53 +10 +1 +40 +40 +40 +40\n/);
});

t.test('--routes: one client in a thousand may exceed the limit, and no more', async (t) => {
  for (const [clients, limit] of [
    [999, 5],
    [1000, 2],
  ] as const) {
    const lines = Array.from({ length: clients }, (_, i) =>
      Array.from({ length: i === 0 ? 5 : 2 }, () => nginx(1, `10.0.${i >> 8}.${i & 255}`, 'GET /a')),
    );
    const cwd = folderOf(t, { 'access.log': lines.flat() });
    t.match((await replay(cwd, 'access.log', '--routes')).routes, [{ identities: clients, limit }]);
  }
});

t.test('--routes: counts by a key that the policy file names', async (t) => {
  const lines = [{ 'X-Api-Key': ['a'] }, { 'X-Api-Key': ['b'] }, {}].map((headers, i) =>
    caddy(at(i), { request: { uri: '/things', headers } }),
  );
  const cwd = folderOf(t, { 'caddy.log': lines });
  t.match((await replay(cwd, 'caddy.log', '--routes')).routes, [
    { identifier: 'api-key', requests: 2, identities: 2 },
    { identifier: 'ip', requests: 1, identities: 1 },
  ]);
});

t.test('our own log: requests of banned clients are not malformed', async (t) => {
  const line = (decision: string): string =>
    JSON.stringify({
      ...{ time: '2026-11-22T08:23:01.123Z', method: 'GET', path: '/items/1', status: 429, decision },
      ...{ identities: {}, address: 'A'.repeat(22), policies: [] },
    });
  const cwd = folderOf(t, { 'own.log': [line('banned'), line('banned'), line('malformed')] });
  t.match(await replay(cwd, 'own.log'), { requests: 3, banned: 2, malformed: 1, denied: 0, allowed: 0 });
  const { stdout } = await floodgateCommand(['replay', 'own.log'], { cwd });
  t.match(stdout, /1 malformed, 2 of banned clients/);
});

t.test('trusted proxies: a line without X-Forwarded-For has the client that its proxy names', async (t) => {
  const lines = [1, 2, 3].map((n) => nginx(n, `192.0.2.${n}`, 'GET /a'));
  const cwd = folderOf(t, { 'a.log': lines }, byAddress('name: all, route: "* /*", limit: 9, window: 1m'));
  for (const trusted of ['1', '2', '10.0.0.0/8']) {
    const result = await replay(cwd, 'a.log', '--routes', '--trusted-proxies', trusted);
    t.match(
      result,
      { policies: [{ identities: 3 }], routes: [{ identities: 3, limit: 1 }], notes: [] },
      trusted,
    );
  }
});

t.test('an unreadable chain of proxies is told, and gives no limit', async (t) => {
  const lines = [1, 2, 3].map((n) => `${nginx(n, '10.0.0.1', 'GET /a')} "198.51.100.${n}"`);
  const cwd = folderOf(t, { 'a.log': lines }, byAddress('name: all, route: "* /*", limit: 9, window: 1m'));
  t.match(await replay(cwd, 'a.log', '--routes', '--trusted-proxies', '2'), {
    policies: [{ identities: 1 }],
    routes: [],
    notes: [/X-Forwarded-For of 3 requests names no client.*one client/],
  });
});
