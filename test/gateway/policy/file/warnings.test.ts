/** Tests the warnings about policies that are valid but probably mistakes: each kind with its line, and no others. */
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';

const HEAD = `version: 1
identifiers:
  ip: { source: client-address }
`;

function warnings(rows: readonly string[], identifiers = ''): string[] {
  const text = `${HEAD}${identifiers}policies:\n${rows.map((row) => `  - { ${row} }`).join('\n')}\n`;
  const set = loadPolicies(text, 'p.yaml', () => '203.0.113.0/24 AS64500\n');
  return warningsOf(set, placesIn(text)).map(
    ({ line, column, message, fix }) => `${line}:${column} ${message}; ${fix}`,
  );
}

t.test('warns of entries that nothing uses', async (t) => {
  t.match(warnings(['name: a, route: GET /a, identifier: ip, limit: 1, window: 1m, bucket: b']), [
    /^5:\d+ nothing shares the bucket b with a/,
  ]);
  const unused = '  key: { source: [{ header: x-key }] }\n';
  const row = 'name: a, route: GET /a, identifier: ip, limit: 1, window: 1m';
  t.strictSame(warnings([row], unused), ['4:3 no policy uses the identifier key; use it, or remove it']);
  const stopped = '  key: { source: [{ header: x_key }, { bearer: k_ }] }\n';
  t.match(warnings([row, 'name: b, route: GET /b, identifier: key, limit: 1, window: 1m'], stopped), [
    /^4:3 the gateway removes the header x_key of key/,
  ]);
  const host = '  key: { source: [{ header: host }] }\n';
  t.strictSame(
    warnings([row, 'name: b, route: GET /b, identifier: key, limit: 1, window: 1m'], host),
    [],
    'the application gets the Host field',
  );
});

t.test('warns of a body field that one client can invent without a limit', async (t) => {
  const login = 'name: login, route: "POST /login", identifier: { body: email }, limit: 5, window: 1m';
  const address = 'name: address, route: "POST /*", identifier: ip, limit: 100, window: 1m';
  const told =
    '5:54 login counts a field that clients can invent, and no policy counts their addresses on this route; add a policy by address, or one client can try any number of values';
  t.strictSame(warnings([login, address]), []);
  t.strictSame(warnings([login, address.replace('/*', '/other')])[0], told);
  t.strictSame(warnings([login, `${address}, mode: shadow`])[0], told);
  t.strictSame(
    warnings([login, `${address}, distinct: { body: email }`]),
    [],
    'so many accounts of one address',
  );
  t.strictSame(warnings([login, `${address}, distinct: path`])[0], told);
});

t.test('warns of a shared limit that one client can use up', async (t) => {
  const all = 'name: all, route: "GET /*", identifier: everyone, limit: 100, window: 1m';
  const own = (limit: number, more = ''): string =>
    `name: own, route: "* /*", identifier: ip, limit: ${limit}, window: 1m${more}`;
  const fix = 'add a policy by address on this route that allows each client at most a tenth of it';
  const told = (least: number) =>
    `5:47 one client can use ${least} of the 100 requests that all clients of all share; ${fix}`;
  const missing = told(100);
  const elsewhere = own(10).replace('/*', '/a/*');
  t.strictSame(warnings([all, elsewhere]), [missing]);
  t.strictSame(warnings([all, own(10)]), []);
  t.strictSame(warnings([all, own(11)]), [told(11)]);
  t.strictSame(warnings([all, own(50).replace('1m', '1h')]), [told(50)], 'within a minute');
  t.strictSame(warnings([all, own(1).replace('1m', '1s')])[0]?.includes('use 60 of the 100'), true);
  t.strictSame(warnings([all, own(10, ', mode: shadow')]), [missing]);
  t.strictSame(warnings([`${all}, userAgent: [GPTBot]`, elsewhere]), [], 'robots may use it up');
  t.strictSame(warnings([`${all}, mode: shadow`, elsewhere]), []);
});

t.test('warns of a shared limit of a path, a network or a host that one client can use up', async (t) => {
  const provider = '  provider: { source: [{ network: networks.txt }] }\n';
  const row = 'limit: 100, window: 1m';
  const shop = `name: shop, route: "* /s/{shop}/*", identifier: path.shop, ${row}`;
  const told = (rows: readonly string[], identifiers = ''): string[] =>
    warnings(rows, provider + identifiers).filter((warning) => !warning.includes('no policy uses'));
  const hosts = 'hosts: [a.example.org, b.example.org]';
  const host = `name: host, route: "* /*", identifier: host, ${hosts}, ${row}`;
  const net = `name: net, route: "* /*", identifier: provider, ${row}`;
  const both = `name: both, route: "* /s/{shop}/*", identifier: [provider, path.shop], ${row}`;
  const own = (limit: number, more = 'identifier: ip', route = '* /*'): string =>
    `name: own, route: "${route}", ${more}, limit: ${limit}, window: 1m`;
  for (const shared of [shop, host, net, both]) {
    t.match(told([shared]), [/one client can use 100 of the 100 requests/], shared);
    t.match(told([shared, own(11)]), [/one client can use 11 of the 100 requests/], shared);
    t.match(told([shared, own(10, `identifier: ip, except: [GET /s/1/a]`)]), [/use 100 of/], shared);
    t.strictSame(told([shared, own(10)]), [], shared);
  }
  const ofShop = 'identifier: [ip, path.shop]';
  t.strictSame(told([shop, own(10, ofShop, '* /s/{shop}/*')]), [], 'a limit of each client in each shop');
  t.strictSame(told([host, own(10, `identifier: ip, ${hosts}`)]), [], 'a limit of the same hosts');
  t.match(told([host, own(10, 'identifier: ip, hosts: [a.example.org]')]), [/use 100 of/]);
  const session = '  session: { source: [{ cookie: sid }] }\n';
  t.match(told([shop, own(10, 'identifier: [ip, session]')], session), [/use 100 of/], 'invented');
  t.strictSame(told([shop.replace('100', '9')]), [], 'a tenth would be less than one request');
  t.strictSame(
    told(['name: hook, route: "POST /hooks/{token}", identifier: path.token, limit: 60, window: 1m']),
    [],
    'a secret in the path is the client itself',
  );
});

t.test('warns of a key that nothing counts once it is proven', async (t) => {
  const keys = '  key: { source: [{ header: x-key }] }\n';
  const strangers = 'name: strangers, route: "* /v1/*", identifier: ip, unless: key, limit: 5, window: 1m';
  const key = 'name: keys, route: "* /*", identifier: key, limit: 100, window: 1m';
  const told =
    '6:66 no policy counts a proven key on this route, and an application that answers 200 to an invented one proves it; add a policy by key';
  const warned = (...rows: readonly string[]): readonly string[] => warnings([strangers, ...rows], keys);
  t.strictSame(warned(key), []);
  t.strictSame(warned(key.replace('/*', '/v1/items')), [told]);
  t.strictSame(warned(`${key}, mode: shadow`), [told]);
  t.strictSame(warned(`${key}, query: [page]`), [told]);
  t.strictSame(warned(`${key}, count: failure`), [told]);
  t.strictSame(warned(`${key}, rollout: 10%`), [told]);
  const excepting = `${strangers}, except: [POST /v1/a]`;
  t.strictSame(warnings([excepting, `${key}, except: [POST /v1/a]`], keys), [], 'the same requests');
  t.equal(warnings([excepting, `${key}, except: [POST /v1/b]`], keys).length, 1);
  t.strictSame(warned(), [told], 'and the identifier is used');
  const all = 'name: all, route: "* /*", identifier: ip, limit: 1000, window: 1m';
  t.strictSame(warned(all), [], 'its address is counted, with a key or without');
  const first = all.replace('identifier: ip', 'identifier: { first: [key, ip] }');
  t.strictSame(warned(first), [], 'the key is counted, if it is presented');
});

t.test('warns of networks under never that the file does not have', async (t) => {
  const site = (more = '') => `name: site, route: GET /a, identifier: ip, limit: 10, window: 1m${more}`;
  const told = (regulars: string, ...rows: string[]): string[] => {
    const text = `${HEAD}regulars: ${regulars}\npolicies:\n${rows.map((row) => `  - { ${row} }`).join('\n')}\n`;
    const set = loadPolicies(text, 'p.yaml', () => '192.0.2.0/24 AS64500\n198.51.100.0/24 7\n');
    return warningsOf(set, placesIn(text)).map(({ line, column, message }) => `${line}:${column} ${message}`);
  };
  const newcomers = ', newcomers: { limit: 5, window: 1m }';
  t.strictSame(told('{ never: { network: n.txt, name: [AS64501, 7, AS64500, 8] } }', site(newcomers)), [
    '4:44 n.txt has no network of AS64501',
    '4:44 n.txt has no network of 8',
  ]);
});
