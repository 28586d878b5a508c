/** The client address of a request is computed once, however many parts of the gateway need it. */
import t from 'tap';
import { RequestOrigin } from '#gateway/http/request-origin.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { Callers } from '#gateway/request/reading/caller.ts';
import { PolicyTable } from '#gateway/request/reading/policy-table.ts';
import { Rehearsal } from '#gateway/workbench/rehearsal/rehearsal.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { sendFrom } from '#test/gateway/bounds/from.ts';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  network: { source: client-address, ipv6Prefix: 48 }
  key: { source: [{ header: x-api-key }] }
deny: [{ digest: AAAAABAAAAC_____AAAAAA }, { address: 203.0.113.0/24 }]
policies:
  - { name: ip, route: GET /a, identifier: ip, limit: 100, window: 1d, overrides: [{ for: { address: 192.0.2.0/24 }, limit: 9 }] }
  - { name: network, route: GET /a, identifier: network, limit: 100, window: 1d }
  - { name: keys, route: GET /a, identifier: key, limit: 100, window: 1d }
`;

t.test('one caller object for a connection, until the policies change', async (t) => {
  const trust = parseTrustedProxies('loopback');
  const callers = new Callers(trust, () => undefined);
  const table = new PolicyTable(loadPolicies(POLICIES, 'test.yaml'), new Digester('salt'), Date.now);
  const client = new RequestOrigin({ remoteAddress: '2001:db8::1' }, trust);
  const caller = callers.of(client, '192.0.2.1', table);
  t.equal(caller.address.counted(), '2001:db8::/64', 'a client cannot name another address');
  t.equal(callers.of(client, '', table), caller);
  t.equal(caller.identity(), caller.identity());
  const reloaded = callers.of(client, '', table.withPolicies(table.set));
  t.not(reloaded, caller);
  t.strictSame(reloaded.identity(), caller.identity());
  t.notSame(callers.of(client, '', table.withSalt('other')).identity(), caller.identity());

  const proxy = new RequestOrigin({ remoteAddress: '127.0.0.1' }, trust);
  const first = callers.of(proxy, '192.0.2.1', table);
  t.notSame(callers.of(proxy, '192.0.2.2', table).identity(), first.identity());
  t.equal(first.charges, null, 'the next request starts without charges');
});

t.test('a connection keeps a bounded number of charges', async (t) => {
  const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g'];
  const rows = names.map(
    (name) => `name: ${name}, route: GET /a, identifier: ip, query: [${name}], limit: 500, window: 1d`,
  );
  const rehearsal = new Rehearsal(loadPolicies(policyFile(...rows), 'test.yaml'), { clock: () => 0 });
  const socket = { remoteAddress: '192.0.2.1' };
  const sizes: number[] = [];
  for (let chosen = 1; chosen < 2 ** names.length; chosen++) {
    const query = names.filter((_, i) => ((chosen >> i) & 1) === 1).join('&');
    const request = rehearsal.locate({ method: 'GET', target: `/a?${query}`, rawHeaders: [], socket });
    if (request.kind === 'malformed') return t.fail(request.reason);
    t.equal(rehearsal.read(request).kind, 'charged');
    sizes.push(request.caller.charges?.size ?? -1);
  }
  t.strictSame([sizes[0], sizes.at(-1)], [1, 64]);
});

t.test('counts an unreadable chain once for each request', async (t) => {
  const { sample, port, log } = await startTestGateway(t, {
    policies: POLICIES,
    env: { ...BEHIND_PROXY, GATEWAY_ACCESS_LOG: '/dev/null' },
  });
  const counted = () => sample('floodgate_untrusted_chains_total');
  const ask = async (path: string, forwardedFor: string) => {
    const headers = { 'x-forwarded-for': forwardedFor, 'x-api-key': 'unproven' };
    return (await sendFrom('127.0.0.1', port, path, { headers })).status;
  };
  t.equal(await ask('/a', '192.0.2.1'), 200);
  t.equal(counted(), 0);
  for (const path of ['/a', '/a', '/elsewhere']) t.equal(await ask(path, 'nonsense'), 200);
  t.equal(counted(), 3);
  t.equal(log.filter(({ msg }) => String(msg).includes('cannot be read')).length, 1, 'one warning a minute');
});

t.test('requests of one connection from a trusted proxy have separate addresses', async (t) => {
  const { port } = await startTestGateway(t, { policies: POLICIES, env: BEHIND_PROXY });
  const from = (address: string, more = '') =>
    `GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: ${address}\r\n${more}\r\n`;
  const requests = [
    from('192.0.2.1'),
    from('203.0.113.1'),
    from('192.0.2.2'),
    from('192.0.2.1', 'Connection: close\r\n'),
  ];
  const replies = await sendRaw(port, requests.join('')).ended();
  t.strictSame(
    [...replies.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => status),
    ['200', '429', '200', '200'],
  );
  t.strictSame(
    [...replies.matchAll(/"ip";r=(\d+)/g)].map(([, remaining]) => remaining),
    ['8', '8', '7'],
  );
});
