/** Tests which headers are removed because an upstream could trust them. */
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { values } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, type Owner, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

/** Returns the header section that the upstream got of a request with these fields. */
async function seenBy(port: number, fields: readonly string[]): Promise<string[]> {
  const client = sendRaw(port, ['GET / HTTP/1.1', 'Host: app.test', ...fields, '', ''].join('\r\n'));
  const text = await client.until(/\}$/);
  client.socket.destroy();
  return JSON.parse(text.slice(text.indexOf('\r\n\r\n') + 4)).headers;
}

const OVERRIDES = [
  'X-HTTP-Method-Override: DELETE',
  'X-HTTP-Method: DELETE',
  'X-Method-Override: DELETE',
  'X-Original-URL: /admin',
  'X-Original-URI: /admin',
  'X-Rewrite-URL: /admin',
  'Proxy: http://evil.test',
];
const UNDERSCORES = ['X_Api_Key: k', 'X_Forwarded_For: 192.0.2.1', 'Content_Length: 5', '_: 1'];
const FORWARDING = [
  'Forwarded: for=192.0.2.3',
  'X-Real-IP: 192.0.2.3',
  'True-Client-IP: 192.0.2.3',
  'CF-Connecting-IP: 192.0.2.3',
  'X-Client-IP: 192.0.2.3',
  'X-Cluster-Client-IP: 192.0.2.3',
  'Fastly-Client-IP: 192.0.2.3',
  'X-Forwarded: for=192.0.2.3',
  'X-Forwarded-Port: 443',
  'X-Forwarded-Prefix: /admin',
  'X-Forwarded-Server: inside',
  'X-Forwarded-Scheme: https',
  'X-Forwarded-Ssl: on',
  'X-Forwarded-User: root',
  'X-Forwarded-Client-Cert: Subject=root',
  'X-Original-Host: inside',
  'Front-End-Https: on',
  'Forwarded-For: 192.0.2.3',
  'X-NF-Client-Connection-IP: 192.0.2.3',
  'CloudFront-Viewer-Address: 192.0.2.3:1234',
  'Incap-Client-IP: 192.0.2.3',
  'X-Sucuri-ClientIP: 192.0.2.3',
  'X-Vercel-Proxied-For: 192.0.2.3',
];
/** Headers that applications trust. */
const PRIVATE = [
  'X-Formbricks-Client-IP: 192.0.2.3',
  'X-Middleware-Subrequest: middleware:middleware',
  'X-Gateway-Over: login',
];
const ORDINARY = [
  'Via: 1.1 a',
  'X-Api-Key: k',
  'X-Forward: 1',
  'X-Requested-With: a',
  'Proxied: 1',
  'User-Agent: a',
];

const PRIVATE_NAMES = [
  'X-Formbricks-Client-IP',
  'x_formbricks_client_ip',
  'X-Middleware-Subrequest',
  'X_Gateway_Over',
];
const nameOf = (field: string): string => field.slice(0, field.indexOf(':'));

t.test('removes a client’s own statements about method, path and address, in any case', async (t) => {
  const { port } = await startTestGateway(t);
  const all = [...OVERRIDES, ...UNDERSCORES, ...FORWARDING, ...ORDINARY];
  for (const fields of [all, all.map((field) => field.toLowerCase()), all.map((f) => f.toUpperCase())]) {
    const seen = await seenBy(port, fields);
    for (const field of [...OVERRIDES, ...UNDERSCORES, ...FORWARDING]) {
      t.strictSame(values(seen, nameOf(field)), [], nameOf(field));
    }
    for (const field of ORDINARY) t.equal(values(seen, nameOf(field)).length, 1, `${nameOf(field)} passes`);
  }
});

t.test('a trusted proxy may set the client, but not another method or path', async (t) => {
  const { port } = await startTestGateway(t, { env: BEHIND_PROXY });
  const seen = await seenBy(port, [...OVERRIDES, ...UNDERSCORES, ...FORWARDING]);
  for (const field of FORWARDING) t.equal(values(seen, nameOf(field)).length, 1, nameOf(field));
  for (const field of [...OVERRIDES, ...UNDERSCORES])
    t.strictSame(values(seen, nameOf(field)), [], nameOf(field));
});

t.test('removes headers that only an application sets, on every way in', async (t) => {
  for (const env of [{}, BEHIND_PROXY]) {
    const { port } = await startTestGateway(t, { env });
    for (const spelled of [PRIVATE, PRIVATE.map((field) => field.toUpperCase())]) {
      const underscored = spelled.map((field) => field.replaceAll('-', '_'));
      const seen = await seenBy(port, [...spelled, ...underscored, 'User-Agent: a']);
      t.strictSame(privateIn(seen), [], 'sent as fields');
      t.equal(values(seen, 'User-Agent').length, 1);
      const names = spelled.map(nameOf).join(', ');
      t.strictSame(privateIn(await seenBy(port, [...spelled, `Connection: ${names}`])), [], 'in Connection');
    }
    t.strictSame(privateIn(await seenInUpgrade(t, env)), [], 'in an upgrade');
  }
});

function privateIn(seen: readonly string[]): string[] {
  return seen.filter((name, i) => i % 2 === 0 && /formbricks.client|middleware.sub|gateway.over/i.test(name));
}

async function seenInUpgrade(owner: Owner, env: Record<string, string>): Promise<string[]> {
  const seen: string[] = [];
  const upstream = await startUpstream(owner);
  upstream.server.on('upgrade', (req, socket) => {
    seen.push(...req.rawHeaders);
    socket.end('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n');
  });
  const { port } = await startTestGateway(owner, { upstream, env });
  const fields = ['Host: app.test', 'Connection: Upgrade', 'Upgrade: websocket', ...PRIVATE, '', ''];
  const client = sendRaw(port, ['GET /ws HTTP/1.1', ...fields].join('\r\n'));
  await client.until(/^HTTP\/1\.1 101 /);
  client.socket.destroy();
  return seen;
}

t.test('GATEWAY_PASS_HEADERS lets exactly the named headers pass', async (t) => {
  const { port } = await startTestGateway(t, {
    env: { GATEWAY_PASS_HEADERS: 'X-HTTP-Method-Override, x_request_id, CF-Connecting-IP,x-forwarded-port,' },
  });
  const passed = [
    'X-HTTP-Method-Override: PUT',
    'X_Request_Id: 1',
    'CF-Connecting-IP: a',
    'X-Forwarded-Port: 1',
  ];
  const seen = await seenBy(port, [...passed, 'X-HTTP-Method: PUT', 'X_Request: 1', 'X-Forwarded-Prefix: /']);
  for (const field of passed) t.equal(values(seen, nameOf(field)).length, 1, nameOf(field));
  for (const name of ['X-HTTP-Method', 'X_Request', 'X-Forwarded-Prefix'])
    t.strictSame(values(seen, name), [], name);
});

t.test('a header that can never pass is refused at start', async (t) => {
  for (const value of [
    'Transfer-Encoding',
    'x-gateway-ratelimited',
    'X-Forwarded-For',
    'Host',
    'a b',
    'ä',
    ...PRIVATE_NAMES,
  ]) {
    t.throws(
      () => readConfig({ GATEWAY_PASS_HEADERS: `x-ok, ${value}` }),
      { message: new RegExp(`^GATEWAY_PASS_HEADERS: "${value}"`) },
      value,
    );
  }
});

t.test('a name with the same length and first letter is not mistaken for another', async (t) => {
  const filter = new HeaderFilter();
  for (const name of ['x-real-ap', 'x-real-ips', 'Pr0xy', 'PROXI', 'hosu', ''])
    t.notOk(filter.stops(name, false), name);
});
