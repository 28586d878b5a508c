import { connect } from 'node:net';
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { Introductions } from '#gateway/listen/proxy-protocol/introductions.ts';
import { parseTrustedProxies } from '#shared/trusted-proxies.ts';
import { startBareServer } from '#test/gateway/proxy/bare-server.ts';
import { values } from '#test/gateway/proxy/exchange.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { partsIn } from '#test/support/parts.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';

const TRUSTING = { GATEWAY_PROXY_PROTOCOL: '1', GATEWAY_TRUSTED_PROXIES: '127.0.0.1' };
const GET = 'GET /a HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n';
const from = (address: string): string => `PROXY TCP4 ${address} 127.0.0.1 5000 80\r\n`;
const statusOf = (text: string): number => Number(/^HTTP\/1\.1 (\d{3}) /.exec(text)?.[1] ?? 0);

// Its 10 seconds pass during the other tests.
const silence = startUpstream(t).then((upstream) =>
  Promise.all(
    ['0', '1'].map(async (GATEWAY_OWN_PARSER) => {
      const env = { ...TRUSTING, GATEWAY_OWN_PARSER };
      const { port } = await startTestGateway(t, { upstream: upstream.origin, env });
      return sendRaw(port, from('192.0.2.7')).ended();
    }),
  ),
);

t.test('the client is the one that the header names', async (t) => {
  const { port, gateway } = await startTestGateway(t, {
    env: TRUSTING,
    policies: policyFile('name: all, route: GET /*, identifier: ip, limit: 2, window: 366d'),
  });
  const ask = (start: string): Promise<string> => sendRaw(port, start + GET).ended();
  const first = await ask(from('192.0.2.7'));
  t.equal(statusOf(first), 200);
  const seen = JSON.parse(first.slice(first.indexOf('\r\n\r\n') + 4));
  t.strictSame(values(seen.headers, 'x-forwarded-for'), ['192.0.2.7']);
  t.equal(statusOf(await ask(from('192.0.2.7'))), 200);
  const denied = await ask(from('192.0.2.7'));
  t.equal(statusOf(denied), 429);
  const [, id = ''] = /x-gateway-decision: (\S+)/.exec(denied) ?? [];
  t.match(await gateway.findDecision(id), { addressFrom: 'PROXY header' });
  t.equal(statusOf(await ask(from('192.0.2.8'))), 200, 'another client is admitted');
  const claims = `${from('192.0.2.7')}GET /a HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 192.0.2.9\r\nConnection: close\r\n\r\n`;
  t.equal(statusOf(await sendRaw(port, claims).ended()), 429, 'a client cannot name another one');
  t.equal(statusOf(await ask('PROXY UNKNOWN\r\n')), 200, 'UNKNOWN means the proxy itself');
});

t.test('a header in pieces, and requests right behind it', async (t) => {
  const { port } = await startTestGateway(t, { env: TRUSTING });
  const client = sendRaw(port, 'PROXY TCP4 192.0.2.7');
  client.socket.setNoDelay(true);
  for (const piece of [
    ' 127.0.0.1 1 2',
    '\r',
    '\nPOST /a HTTP/1.1\r\nHost: a\r\nContent-Length: 6\r\n\r\nabc',
  ]) {
    await new Promise((resolve) => client.socket.write(piece, resolve));
    await new Promise((resolve) => setImmediate(resolve));
  }
  client.socket.write('defGET /b HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n');
  const text = await client.ended();
  t.match(text, /"url":"\/a"[\s\S]*"body":"abcdef"[\s\S]*"url":"\/b"/);
});

t.test('closes and counts untrusted peers, silent ones, and those that send something else', async (t) => {
  const introductions = new Introductions(parseTrustedProxies('127.0.0.1'), 100);
  const { port, bounds, clients } = await startBareServer(t, {
    trustedProxies: '127.0.0.1',
    introductions,
  });
  const stranger = connect({ port, host: '127.0.0.1', localAddress: '127.0.0.9' });
  stranger.on('error', () => undefined);
  stranger.write(from('192.0.2.7') + GET);
  let received = '';
  stranger.on('data', (chunk: Buffer) => {
    received += chunk.toString();
  });
  await new Promise((resolve) => stranger.once('close', resolve));
  t.equal(received, '');
  t.equal(await sendRaw(port, GET).ended(), '');
  t.equal(await sendRaw(port, 'PROXY TCP4 nonsense\r\n').ended(), '');
  t.equal(await sendRaw(port, '').ended(), '');
  t.equal(await sendRaw(port, 'PROXY TCP4 192.0.2.7 ').ended(), '');
  t.strictSame(introductions.failures, { untrusted: 1, malformed: 2, timeout: 2 });
  const gone = sendRaw(port, 'PROXY ');
  await until(() => bounds.connections.held === 1, 'it is held');
  gone.socket.destroy();
  await until(() => bounds.connections.held === 0 && clients.size === 0, 'all is given back');
});

t.test('shares are those of the clients in the headers', async (t) => {
  const { port, bounds } = await startBareServer(t, {
    trustedProxies: '127.0.0.1',
    introductions: new Introductions(parseTrustedProxies('127.0.0.1')),
    bounds: { connections: { perClient: 2 } },
  });
  const open = [1, 2].map(() => sendRaw(port, from('192.0.2.7')));
  await until(() => bounds.connections.held === 2, 'two are open');
  t.equal(statusOf(await sendRaw(port, from('192.0.2.7') + GET).ended()), 429);
  t.equal(statusOf(await sendRaw(port, from('192.0.2.8') + GET).ended()), 200);
  for (const { socket } of open) socket.destroy();
});

t.test('a shutdown does not wait for headers', async (t) => {
  const { port, gateway } = await startTestGateway(t, {
    env: { ...TRUSTING, GATEWAY_DRAIN_TIMEOUT_MS: '60000' },
  });
  const silent = sendRaw(port, 'PROXY ');
  await new Promise((resolve) => silent.socket.once('connect', resolve));
  await gateway.close();
  await silent.ended();
});

t.test('needs the addresses of proxies', async (t) => {
  for (const trusted of ['none', '1'])
    t.throws(
      () => readConfig({ GATEWAY_PROXY_PROTOCOL: '1', GATEWAY_TRUSTED_PROXIES: trusted }),
      /GATEWAY_PROXY_PROTOCOL: it needs the addresses of the proxies in GATEWAY_TRUSTED_PROXIES/,
    );
  t.ok(partsIn(TRUSTING).includes('proxyProtocol'));
});

t.test('records a refused connection under the address in the header', async (t) => {
  const { gateway, port } = await startTestGateway(t, {
    env: { ...TRUSTING, GATEWAY_CONNECTIONS: '4', GATEWAY_CLIENT_SHARE: '0.25' },
  });
  const open = sendRaw(port, `${from('192.0.2.7')}GET /a HTTP/1.1\r\nHost: a\r\n\r\n`);
  await until(() => open.received() !== '');
  const refused = await sendRaw(port, from('192.0.2.7') + GET).ended();
  t.equal(statusOf(refused), 429);
  const [, id = ''] = /x-gateway-decision: (\S+)/.exec(refused) ?? [];
  t.match(await gateway.findDecision(id), { policy: 'bound connections', addressFrom: 'PROXY header' });
  open.socket.destroy();
});

t.test('a connection with nothing but a header is closed without a reply', async (t) => {
  t.same(await silence, ['', '']);
});
