/** Where the host of a request stands. No place of it may be a way around its policies; its spellings are in test/policies/hosts.yaml. */
import t from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { insideLongWindow } from '#test/support/window.ts';

const SHOP =
  'name: shop, route: "* *", identifier: everyone, hosts: [shop.example.org], limit: 4, window: 366d';

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
