/** Headers that an upstream could believe and a stranger must not write. */
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { HeaderFilter } from '#gateway/http/header-filter.ts';
import { values } from '#test/gateway/proxy/exchange.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

/** What the upstream saw of a request with these fields. */
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
];
const ORDINARY = [
  'Via: 1.1 a',
  'X-Api-Key: k',
  'X-Forward: 1',
  'X-Requested-With: a',
  'Proxied: 1',
  'User-Agent: a',
];

const nameOf = (field: string): string => field.slice(0, field.indexOf(':'));

t.test('what a stranger says of method, path and client stops here, in any case', async (t) => {
  const upstream = await startUpstream(t);
  const { port } = await startTestGateway(t, { upstream: upstream.origin });
  const all = [...OVERRIDES, ...UNDERSCORES, ...FORWARDING, ...ORDINARY];
  for (const fields of [all, all.map((field) => field.toLowerCase()), all.map((f) => f.toUpperCase())]) {
    const seen = await seenBy(port, fields);
    for (const field of [...OVERRIDES, ...UNDERSCORES, ...FORWARDING]) {
      t.strictSame(values(seen, nameOf(field)), [], nameOf(field));
    }
    for (const field of ORDINARY) t.equal(values(seen, nameOf(field)).length, 1, `${nameOf(field)} goes on`);
  }
});

t.test('a trusted proxy may speak of the client, but not of another method or path', async (t) => {
  const upstream = await startUpstream(t);
  const { port } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: { GATEWAY_TRUSTED_PROXIES: 'loopback' },
  });
  const seen = await seenBy(port, [...OVERRIDES, ...UNDERSCORES, ...FORWARDING]);
  for (const field of FORWARDING) t.equal(values(seen, nameOf(field)).length, 1, nameOf(field));
  for (const field of [...OVERRIDES, ...UNDERSCORES])
    t.strictSame(values(seen, nameOf(field)), [], nameOf(field));
});

t.test('GATEWAY_PASS_HEADERS lets the named ones pass, and only those', async (t) => {
  const upstream = await startUpstream(t);
  const { port } = await startTestGateway(t, {
    upstream: upstream.origin,
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

t.test('what can never pass is refused at start', async (t) => {
  for (const value of ['Transfer-Encoding', 'x-gateway-ratelimited', 'X-Forwarded-For', 'Host', 'a b', 'ä']) {
    t.throws(
      () => readConfig({ GATEWAY_PASS_HEADERS: `x-ok, ${value}` }),
      { message: new RegExp(`^GATEWAY_PASS_HEADERS: "${value}"`) },
      value,
    );
  }
});

t.test('a name that collides with another by length and first letter is not mistaken for it', async (t) => {
  const filter = new HeaderFilter();
  for (const name of ['x-real-ap', 'x-real-ips', 'Pr0xy', 'PROXI', 'hosu', ''])
    t.notOk(filter.stops(name, false), name);
});
