/** Policies with `hosts` on running gateways. No spelling of a host may be a way around its policies. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { onEachStore } from '#test/support/stores.ts';
import { insideLongWindow } from '#test/support/window.ts';

const SHOP =
  'name: shop, route: "* *", identifier: everyone, hosts: [shop.example.org], limit: 4, window: 366d';

t.test('each application has its limit, and a policy without hosts counts all', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: shop, route: "* *", identifier: ip, hosts: [shop.example.org], limit: 3, window: 366d',
    'name: blogs, route: "* *", identifier: ip, hosts: ["*.Blog.example.org", bücher.example], limit: 4, window: 366d',
    'name: all, route: "* *", identifier: ip, limit: 10, window: 366d',
  );
  await onEachStore(t, { policies }, async (t, one, two) => {
    let asked = 0;
    const ask = async (host: string): Promise<number> =>
      (await send(asked++ % 2 === 0 ? one.port : two.port, '/a', { headers: { host } })).status;
    const all = async (count: number, ...hosts: readonly string[]): Promise<number> => {
      let admitted = 0;
      for (let i = 0; i < count; i++) if ((await ask(hosts[i % hosts.length] ?? '')) === 200) admitted++;
      return admitted;
    };
    t.equal(await all(5, 'shop.example.org', 'SHOP.example.org:8443'), 3, 'shop');
    const blogs = ['a.blog.example.org', 'b.a.blog.example.org.', 'xn--bcher-kva.example'];
    t.equal(await all(6, ...blogs), 4, 'all blogs together');
    t.equal(await all(6, 'blog.example.org', 'example.org'), 3, 'what is left for others');
  });
});

t.test('identifier host: a counter for each entry of hosts, and none for invented hosts', async (t) => {
  await insideLongWindow();
  const policies = policyFile(
    'name: each, route: "* *", identifier: [host, ip], hosts: [shop.example.org, "*.example.org"], limit: 3, window: 366d',
    'name: total, route: "* *", identifier: host, hosts: [shop.example.org], limit: 5, window: 366d',
  );
  await onEachStore(t, { policies, env: BEHIND_PROXY }, async (t, one, two) => {
    let asked = 0;
    const ask = async (from: string, host: string): Promise<number> => {
      const { port } = asked++ % 2 === 0 ? one : two;
      return (await send(port, '/a', { headers: { host, 'x-forwarded-for': from } })).status;
    };
    const all = async (from: string, ...hosts: readonly string[]): Promise<number> => {
      let admitted = 0;
      for (const host of hosts) if ((await ask(from, host)) === 200) admitted++;
      return admitted;
    };
    const shop = ['shop.example.org', 'SHOP.example.org.', 'shop.example.org:81', 'shop.example.org'];
    t.equal(await all('192.0.2.1', ...shop), 3, 'one client at one host');
    const below = ['a.example.org', 'b.example.org', 'x.y.example.org', 'c.example.org'];
    t.equal(await all('192.0.2.1', ...below), 3, 'its other hosts, invented ones too');
    t.equal(await all('192.0.2.2', ...shop), 2, 'another client, until the total is used');
    t.equal(await all('192.0.2.2', ...below), 3, 'the total is that of the shop');
    t.equal(await all('192.0.2.1', 'example.org', 'other.test'), 2, 'hosts without an entry');
  });
});

t.test('other spellings of the host are counted or refused', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, { policies: policyFile(SHOP) });
  const ask = async (host: string, target = '/a'): Promise<number> =>
    (await send(port, target, { headers: { host } })).status;
  t.equal(await ask('Shop.Example.Org'), 200);
  t.equal(await ask('shop.example.org.:80'), 200);
  t.equal(await ask('shop.example.org:', 'http://SHOP.example.org:80/a'), 200);
  t.equal(await ask('shop.example.org', 'https://shop.example.org'), 200);
  for (const host of ['shop.example.org', 'SHOP.EXAMPLE.ORG', 'shop.example.org.', 'shop.example.org:9'])
    t.equal(await ask(host), 429, host);
  t.equal(await ask('shop.example.org', 'http://shop.example.org/b'), 429);
  t.equal(
    (await send(port, '/a', { headers: { host: 'shop.example.org', 'x-forwarded-host': 'a.test' } })).status,
    429,
  );
  for (const host of [
    '%73hop.example.org',
    'shop.example.org..',
    'shop..example.org',
    'shop.example.org:x',
    'shop.example.org,a.test',
    '127.1',
    'xn--shop-.example.org',
    '[::1',
  ])
    t.equal(await ask(host), 400, host);
  for (const [host, target] of [
    ['a.test', 'http://shop.example.org/a'],
    ['shop.example.org', 'http://a.test/a'],
    ['a.test', 'http://a.test@shop.example.org/a'],
  ] as const)
    t.equal(await ask(host, target), 400, `${target} with Host: ${host}`);
  const raw = async (text: string): Promise<string> => (await sendRaw(port, text).until(/\r\n/)).slice(9, 12);
  t.equal(await raw('GET / HTTP/1.1\r\nHost: a.test\r\nHost: shop.example.org\r\n\r\n'), '400');
  t.equal(await raw('GET / HTTP/1.0\r\n\r\n'), '400', 'without a host');
  t.equal(await raw('GET / HTTP/1.1\r\nHost:\r\n\r\n'), '400', 'with an empty host');
  t.equal(await raw('GET / HTTP/1.0\r\nHost: shop.example.org\r\n\r\n'), '429');
  for (const host of ['a.test', 'a.shop.example.org', '[::1]:80', 'localhost'])
    t.equal(await ask(host), 200, host);
});

t.test('an address can be a host', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, {
    policies: policyFile(
      'name: own, route: "* *", identifier: everyone, hosts: ["[::1]", 127.0.0.1], limit: 4, window: 366d',
    ),
  });
  const ask = async (host: string): Promise<number> => (await send(port, '/', { headers: { host } })).status;
  for (const host of ['[::1]', '[0:0:0:0:0:0:0:1]:80', '[::0001]', '127.0.0.1:80'])
    t.equal(await ask(host), 200);
  t.equal(await ask('[::1]:9'), 429);
  t.equal(await ask('127.0.0.1.'), 429);
  t.equal(await ask('[::2]'), 200);
});

t.test('a file without hosts accepts what it accepted before', async (t) => {
  const { port } = await startTestGateway(t, {
    policies: policyFile('name: all, route: "* *", identifier: ip, limit: 100, window: 1h'),
  });
  for (const host of ['%73hop.test', 'shop..example.org', '127.1'])
    t.equal((await send(port, '/', { headers: { host } })).status, 200);
  t.equal((await send(port, 'http://a.test/', { headers: { host: 'b.test' } })).status, 200);
});

t.test('behind a trusted proxy, X-Forwarded-Host is the host', async (t) => {
  await insideLongWindow();
  const { port } = await startTestGateway(t, { policies: policyFile(SHOP), env: BEHIND_PROXY });
  const ask = async (forwarded: string | undefined, host = 'inner.test'): Promise<number> => {
    const headers = {
      host,
      'x-forwarded-for': '192.0.2.1',
      ...(forwarded === undefined ? {} : { 'x-forwarded-host': forwarded }),
    };
    return (await send(port, '/a', { headers })).status;
  };
  t.equal(await ask('shop.example.org'), 200);
  t.equal(await ask('Shop.example.org:443'), 200);
  t.equal(await ask('shop.example.org, SHOP.example.org'), 200);
  t.equal(await ask(undefined, 'shop.example.org'), 200, 'without the header, Host is the host');
  t.equal(await ask('shop.example.org.'), 429);
  t.equal(await ask('a.test, shop.example.org'), 400, 'a client has sent one, too');
  t.equal(await ask('shop.example.org, '), 400);
  t.equal(await ask(''), 400);
  t.equal(await ask('a.test', 'shop.example.org'), 200);
  t.equal(await ask(undefined), 200);
});

t.test('exclude and deny name routes of some hosts', async (t) => {
  await insideLongWindow();
  const rows = [
    'name: pages, route: "GET /*", identifier: everyone, limit: 3, window: 366d',
    'name: whole, route: GET /status, identifier: everyone, hosts: [other.test], limit: 100, window: 366d',
  ];
  const { port } = await startTestGateway(t, {
    policies: policyFile(...rows).replace(
      /^exclude: .*$/m,
      `exclude: [{ route: GET /status, hosts: [shop.test, "*.blog.test"] }, GET /free]
deny: [{ route: "* /admin/*", hosts: [shop.test], reason: closed }, { route: "* /admin/keys" }]`,
    ),
  });
  const ask = async (host: string, target: string) => {
    const { status, body } = await send(port, target, { headers: { host } });
    return `${status} ${/"gateway_\w+/.exec(body.toString())?.[0].slice(1) ?? ''}`;
  };
  const forbidden = '403 gateway_forbidden';
  for (let i = 0; i < 5; i++) {
    t.equal(await ask('shop.test', '/status'), '200 ');
    t.equal(await ask('A.blog.test:80', '/status/'), '200 ');
    t.equal(await ask('other.test', '/free'), '200 ');
  }
  t.equal(await ask('shop.test', '/admin/users'), forbidden);
  t.equal(await ask('SHOP.test.', '/x/../admin/users'), forbidden);
  t.equal(await ask('other.test', '/admin/keys'), forbidden);
  t.equal(await ask('other.test', '/admin/users'), '200 ');
  t.equal(await ask('blog.test', '/status'), '200 ');
  t.equal(await ask('other.test', '/status'), '200 ');
  for (const host of ['other.test', 'blog.test'])
    t.equal(await ask(host, '/status'), '429 gateway_rate_limited');
  t.equal(await ask('shop.test', '/a'), '429 gateway_rate_limited');
  t.equal(await ask('shop.test', '/status'), '200 ', 'the same target again, for another host');
  t.equal(await ask('127.1', '/status'), '400 gateway_bad_request', 'these routes alone need a host');
});

t.test('asked by a proxy: the proxy names the host', async (t) => {
  await insideLongWindow();
  const port = await freePort();
  const { logged } = await startTestGateway(t, {
    upstream: 'http://127.0.0.1:9',
    policies: policyFile(SHOP),
    env: { GATEWAY_DECISION_PORT: String(port), ...BEHIND_PROXY },
  });
  const ask = (path: string, host: string, more: Record<string, string> = {}) =>
    send(port, path, { headers: { host, 'x-forwarded-for': '192.0.2.1', ...more } });
  const described = { 'x-forwarded-method': 'GET', 'x-forwarded-uri': '/a' };
  const shop = { ...described, 'x-forwarded-host': 'Shop.example.org' };
  t.equal((await ask('/forward-auth', 'floodgate:9091', shop)).status, 200);
  t.equal((await ask('/auth-request', 'floodgate:9091', shop)).status, 200);
  t.equal((await ask('/ext-authz/a', 'shop.example.org:443')).status, 200);
  t.equal((await ask('/ext-authz/a', 'SHOP.example.org')).status, 200);
  t.equal((await ask('/forward-auth', 'floodgate:9091', shop)).status, 429);
  const other = { ...described, 'x-forwarded-host': 'a.test' };
  t.equal((await ask('/forward-auth', 'shop.example.org', other)).status, 200);

  const without = await ask('/forward-auth', 'shop.example.org', described);
  t.match(
    { status: without.status, body: without.body.toString() },
    { status: 400, body: 'no X-Forwarded-Host' },
  );
  await logged(/the proxy sent no X-Forwarded-Host: some policies have hosts/);
  const invented = await ask('/ext-authz/a', 'shop.example.org', { 'x-forwarded-host': 'a.test' });
  t.match(
    { status: invented.status, body: invented.body.toString() },
    { status: 400, body: 'allowed_headers' },
  );
  const twice = sendRaw(
    port,
    'GET /forward-auth HTTP/1.1\r\nHost: b\r\nX-Forwarded-For: 192.0.2.1\r\nX-Forwarded-Method: GET\r\nX-Forwarded-Uri: /a\r\nX-Forwarded-Host: shop.example.org\r\nX-Forwarded-Host: a.test\r\n\r\n',
  );
  t.match(await twice.until(/\}$/), /^HTTP\/1\.1 400 [\s\S]*X-Forwarded-Host more than once/);
});
