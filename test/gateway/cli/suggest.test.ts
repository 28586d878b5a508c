/** Tests `floodgate suggest`: it writes limits that fit the traffic, as a policy file that `check` accepts. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

function line(second: number, address: string, request: string): string {
  const time = new Date(Date.UTC(2026, 10, 22, 8, 0, second)).toISOString().slice(11, 19);
  return `${address} - - [22/Nov/2026:${time} +0000] "${request} HTTP/1.1" 200 2 "-" "a"`;
}

const LOG = [
  // Nine clients make one or two requests in a minute, one makes forty.
  ...Array.from({ length: 9 }, (_, i) => line(1, `192.0.2.${i}`, `GET /items/${i}`)),
  ...Array.from({ length: 4 }, (_, i) => line(2, `192.0.2.${i}`, `HEAD /items/${i}?x=1`)),
  ...Array.from({ length: 40 }, (_, i) => line(3, '198.51.100.1', `GET /items/${i}/`)),
  line(70, '192.0.2.1', 'GET /items/new'),
  line(71, '192.0.2.1', 'POST /a:b/caf\\xC3\\xA9/:c/x*y/{z}/q\\x22r;s=t'),
  line(72, '192.0.2.1', 'OPTIONS /items/1'),
  line(73, '192.0.2.1', 'GET /a%2Fb'),
].join('\n');

t.test('suggests limits for each route by its percentiles', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'access.log'), LOG);
  const { code, stdout } = await floodgateCommand(['suggest', 'access.log', '--json'], { cwd });
  t.equal(code, 0);
  const result = JSON.parse(stdout);
  t.match(result, {
    lines: 57,
    unreadable: 0,
    requests: 57,
    unknown: 0,
    windowSeconds: 60,
    others: 0,
    oneIn: 1,
  });
  const [items, fresh] = result.routes;
  t.match(items, {
    route: 'GET /items/{id}',
    identifier: 'ip',
    requests: 54,
    identities: 10,
    p50: 1,
    p95: 40,
    p99: 40,
    max: 40,
    candidates: [
      { limit: 40, identitiesDenied: 0 },
      { limit: 80, identitiesDenied: 0 },
    ],
    suggested: { limit: 80, identitiesDenied: 0 },
  });
  t.match(fresh, { route: 'GET /items/new', requests: 1, suggested: { limit: 5 } });
  t.equal(result.routes.length, 3, 'preflights and malformed requests have no route');
});

t.test('the suggested file passes check, and replay can read it', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'access.log'), LOG);
  const printed = await floodgateCommand(['suggest', 'access.log', '--window', '30s'], { cwd });
  t.match(printed.stdout, /^# route +by +requests.*\n# GET \/items\/\{id\} +ip +54 +10/);
  writeFileSync(join(cwd, 'policies.yaml'), printed.stdout);
  const checked = await floodgateCommand(['check', '--json', 'policies.yaml'], { cwd });
  t.match({ ...checked, ...JSON.parse(checked.stdout) }, { code: 0, ok: true, policies: 3, problems: [] });
  const replayed = await floodgateCommand(['replay', 'access.log', '--json'], { cwd });
  t.match(JSON.parse(replayed.stdout).policies[0], { name: 'get-items-id', allowed: 54, denied: 0 });
});

t.test('counts by key if the log has keys', async (t) => {
  const cwd = temporaryFolder(t);
  const caddy = (second: number, headers: object): string =>
    JSON.stringify({
      ts: Date.UTC(2026, 10, 22, 8, 0, second) / 1000,
      request: { remote_ip: '192.0.2.1', method: 'GET', uri: '/items', headers },
      status: 200,
    });
  writeFileSync(
    join(cwd, 'caddy.log'),
    [caddy(1, { 'X-Key': ['a'] }), caddy(2, { 'X-Key': ['b'] }), caddy(3, {})].join('\n'),
  );
  const { stdout } = await floodgateCommand(['suggest', 'caddy.log', '--key', 'X-Key', '--json'], { cwd });
  const { routes, policies } = JSON.parse(stdout);
  t.match(routes, [
    { identifier: 'api-key', requests: 2, identities: 2 },
    { identifier: 'ip', requests: 1, identities: 1 },
  ]);
  t.match(policies, /api-key: \{ source: \[\{ header: x-key \}\] \}/);
});

t.test('wrong arguments', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'access.log'), LOG);
  writeFileSync(join(cwd, 'empty.log'), '');
  const suggest = (...args: string[]) => floodgateCommand(['suggest', ...args], { cwd });
  t.match(await suggest('access.log', '--window', '0s'), { code: 2, stderr: /30s, 1m, 12h or 7d/ });
  t.match(await suggest('access.log', '--window', '400d'), { code: 2 });
  t.match(await suggest('access.log', '--routes', '0'), { code: 2, stderr: /from 1 to 1000/ });
  t.match(await suggest('access.log', '--key', 'a b'), { code: 2, stderr: /header field/ });
  t.match(await suggest('empty.log'), { code: 1 });
  t.match(await suggest('none.log'), { code: 3 });
});
