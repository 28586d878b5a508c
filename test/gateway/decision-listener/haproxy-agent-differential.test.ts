/** Random requests, described over SPOP to one gateway and over HTTP to another. Both must answer alike. */
import { Agent } from 'node:http';
import { isDeepStrictEqual } from 'node:util';
import t, { type Test } from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { seededRandom } from '#test/support/slow-proxy.ts';
import {
  type Address,
  headersBin,
  hello,
  type Item,
  notify,
  spopClient,
  withLength,
} from '#test/support/spop-client.ts';
import { send } from '../proxy/exchange.ts';

const SEED = 26;
const REQUESTS = 1000;
const NOW = 1_700_000_000_000;
const DECISION = /"decision":"[^"]+"/;

const IDENTIFIERS = `
  query: { source: [{ query: key }] }
  cookie: { source: [{ cookie: sid }] }
  hop: { source: [{ header: proxy-authorization }, { header: te }] }
  site: { source: [{ header: x-forwarded-host }] }
exclude:`;
const LISTS = `
deny: [{ address: 192.0.2.66, status: 403, reason: "écrivez-nous" }]
allow: [{ address: 192.0.2.77 }]`;
const POLICIES =
  policyFile(
    'name: ip, route: "GET,POST /ip/*", identifier: ip, limit: 20, window: 1h',
    'name: burst, route: "* /ip/a", identifier: ip, limit: 10, window: 1h, algorithm: token-bucket',
    'name: keys, route: "* /keys/*", identifier: api-key, limit: 10, window: 1h',
    'name: query, route: "* /query", identifier: query, limit: 3, window: 1h',
    'name: cookie, route: "* /cookie", identifier: cookie, limit: 3, window: 1h',
    'name: hop, route: "* /hop", identifier: hop, limit: 3, window: 1h',
    'name: site, route: "* /site", identifier: site, limit: 3, window: 1h',
    'name: shop, route: "* /shops/{shop}/*", identifier: path.shop, limit: 3, window: 1h',
  ).replace('\nexclude:', IDENTIFIERS) + LISTS;

function words(text: string): readonly string[] {
  return text.trim().split(/\s+/);
}

const METHODS = words('GET GET GET POST HEAD PUT DELETE OPTIONS PURGE M-SEARCH TRACE CONNECT get Post G!T');
const PATHS = words('/ip/a /ip/b /keys/a /query /cookie /hop /site /shops/x/a /shops/%78/b /else');
const PIECES = words(
  '/ // /. /.. /%2e%2e /%69p /a%2Fb /%00 /% /%zz /%E9 /%C3%A9 /\xe9 \xff ;v=1 \\ # " < { | ^ : @ + *',
);
const QUERIES = words('?key=1 ?key=2 ?Key=1 ?key=a%20b ?key=1&key=2 ?key=% ?\xff ? ??key=1 ?key');
const OTHERS = words('* http://example.org/ip/a HTTPS://u@h:1/keys/a ip/a example.org:443 //ip/a');
const CLIENTS: readonly (string | Address)[] = [
  ...words('192.0.2.1 192.0.2.2 192.0.2.66 192.0.2.77 2001:db8::1 2001:DB8:0:0::2 ::ffff:192.0.2.1'),
  ...words('192.0.2.3:443 [2001:db8::1]:9 192.0.2.66,192.0.2.2 192.0.2.1,127.0.0.1 unix fe80::1%eth0 1.2.3'),
  { bytes: [192, 0, 2, 1] },
  { bytes: [32, 1, 13, 184, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1] },
  { bytes: [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 2] },
];
const FIELDS = [
  'x-api-key: one',
  'X-API-Key: two',
  'x-api-key: ',
  'x-api-key: \xe9\xff',
  'x_api_key: one',
  'authorization: Bearer fbk_one',
  'Authorization: bearer  fbk_two',
  'authorization: Basic dTpw',
  'proxy-authorization: Basic dTpw',
  'te: trailers',
  'x-forwarded-host: a.example',
  'x-forwarded-host: ///',
  'x-forwarded-proto: https',
  'x-forwarded-proto: gopher',
  'cookie: sid=1',
  'cookie: a=b; sid="2"; sid=3',
  'cookie: Sid=%31; =; \xff',
  'host: a.example',
  'host: a example',
  'x-middleware-subrequest: 1',
  "!#$%&'*+.^`|~: odd",
  'accept: */*',
  `x-long: ${'x'.repeat(3000)}`,
].map((line) => line.split(': ') as [string, string]);

interface Described {
  readonly method: string;
  readonly target: string;
  readonly client: string | Address;
  readonly fields: readonly (readonly [string, string])[];
}

type Random = () => number;

function pick<T>(random: Random, list: readonly T[]): T {
  return list[Math.floor(random() * list.length)] as T;
}

function several<T>(random: Random, list: readonly T[], most: number): T[] {
  return Array.from({ length: Math.floor(random() * (most + 1)) }, () => pick(random, list));
}

function randomRequest(random: Random): Described {
  let target = pick(random, PATHS);
  if (random() < 0.3) target += several(random, PIECES, 3).join('');
  if (random() < 0.4) target += pick(random, QUERIES);
  if (random() < 0.02) target += 'x'.repeat(7000);
  if (random() < 0.05) target = pick(random, OTHERS);
  const [method, client] = [pick(random, METHODS), pick(random, CLIENTS)];
  return { method, target, client, fields: several(random, FIELDS, 3) };
}

function textOf({ bytes }: Address): string {
  if (bytes.length === 4) return bytes.join('.');
  return bytes
    .map((byte, i) => byte.toString(16).padStart(2, '0') + (i % 2 === 1 ? ':' : ''))
    .join('')
    .slice(0, -1);
}

/** The variables that an answer sets. Ids of decisions differ between gateways. */
function variablesOf(status: Item | undefined, body: Item | undefined, headers: object): object {
  const variables: Record<string, unknown> = { status, body: String(body ?? '').replace(DECISION, '') };
  for (const [name, value] of Object.entries(headers))
    variables[name.replaceAll('-', '_')] = /decision$/.test(name) ? 'an id' : value;
  return variables;
}

const OF_THE_MESSAGE = ['connection', 'content-length', 'date', 'keep-alive'];

async function overHttp(t: Test, port: number, requests: readonly Described[]): Promise<object[]> {
  const agent = new Agent({ keepAlive: true, maxSockets: 1 });
  t.teardown(() => agent.destroy());
  const answers: object[] = [];
  for (const { method, target, client, fields } of requests) {
    const headers = ['x-forwarded-for', typeof client === 'string' ? client : textOf(client)];
    headers.push(...fields.flat());
    if (!fields.some(([name]) => name === 'host')) headers.push('host', 'example.org');
    // A reply to HEAD would have no body. node:http does not send all methods and targets.
    const fits = /^(?:GET|POST|PUT|DELETE|OPTIONS|PURGE|M-SEARCH) \/[!-~]*$/.test(`${method} ${target}`);
    const described = ['x-forwarded-method', method, 'x-forwarded-uri', target];
    const answer = fits
      ? await send(port, `/ext-authz${target}`, { agent, method, headers })
      : await send(port, '/forward-auth', { agent, headers: [...headers, ...described] });
    const told = { ...answer.headers };
    for (const name of OF_THE_MESSAGE) delete told[name];
    answers.push(variablesOf(answer.status, answer.body.toString('latin1'), told));
  }
  return answers;
}

async function overSpop(t: Test, port: number, requests: readonly Described[]): Promise<object[]> {
  const { socket, frames } = spopClient(t, port);
  const questions = requests.map(({ method, target, client, fields }, i) => {
    // HAProxy has no path for it.
    const uri = target === '*' ? null : Buffer.from(target, 'latin1');
    return notify([1, i], { method, uri, client, headers: headersBin(fields) });
  });
  socket.write(Buffer.concat([hello(), ...questions].map(withLength)));
  const [, ...received] = await frames(1 + requests.length);
  const answers: object[] = [];
  for (const { ids, items } of received) {
    const { status, body, ...headers } = items;
    answers[ids[1]] = variablesOf(status, body, headers);
  }
  return answers;
}

const KINDS: readonly (readonly [string, Readonly<Record<string, string>>])[] = [
  ['networks of proxies', { GATEWAY_TRUSTED_PROXIES: 'loopback' }],
  ['a number of proxies', { GATEWAY_TRUSTED_PROXIES: '2', GATEWAY_DECISION_CREDENTIALS: 'proven' }],
];
for (const [name, settings] of KINDS) {
  t.test(name, async (t) => {
    const random = seededRandom(SEED);
    const requests = Array.from({ length: REQUESTS }, () => randomRequest(random));
    const [one, other] = await Promise.all(
      [overSpop, overHttp].map(async (ask) => {
        const port = await freePort();
        await startTestGateway(t, {
          upstream: 'http://127.0.0.1:9',
          policies: POLICIES,
          env: { GATEWAY_DECISION_PORT: String(port), ...settings },
          clock: () => NOW,
          wallClock: () => NOW,
        });
        return ask(t, port, requests);
      }),
    );
    const differences = requests.flatMap((request, i) =>
      isDeepStrictEqual(one?.[i], other?.[i]) ? [] : [{ request, spop: one?.[i], http: other?.[i] }],
    );
    t.same(differences.slice(0, 3), []);
    for (const status of [200, 400, 403, 429])
      t.ok(
        (one ?? []).filter((answer) => 'status' in answer && answer.status === status).length > 20,
        `${status}`,
      );
  });
}
