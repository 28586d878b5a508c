/** Upgrades to other protocols than WebSocket, by the setting, and requests whose upgrade is not forwarded. */
import t from 'tap';
import { type Owner, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { startRawUpstream } from './exchange.ts';

/** Both ways in: without and with the gateway's own parser. */
const PARSERS = ['0', '1'] as const;

function asks(protocol: string, method = 'GET', more = ''): string {
  return `${method} /attach HTTP/1.1\r\nHost: a.test\r\nConnection: Upgrade\r\nUpgrade: ${protocol}\r\n${more}\r\n`;
}

/** Sends bytes back after a switch to a given protocol. */
function startSwitching(owner: Owner, to: string) {
  let request = '';
  return startRawUpstream(owner, (socket, text) => {
    if (request !== '') socket.write(text.slice(text.lastIndexOf('<')));
    else if (text.endsWith('\r\n\r\n')) {
      request = text;
      socket.write(`HTTP/1.1 101 UPGRADED\r\nConnection: Upgrade\r\nUpgrade: ${to}\r\n\r\n`);
    }
  });
}

for (const parser of PARSERS) {
  const env = { GATEWAY_OWN_PARSER: parser, GATEWAY_UPGRADES: 'websocket, tcp, SPDY/3.1, 2' };

  t.test(
    `own parser ${parser}: 101: what Docker and Kubernetes ask for is forwarded and counted`,
    async (t) => {
      const cases = [
        ['tcp', asks('tcp', 'POST', 'Content-Length: 0\r\n')],
        ['SPDY/3.1', asks('SPDY/3.1', 'POST', 'Content-Length: 0\r\n')],
        ['SPDY/3.1', asks('spdy/3.1')],
        ['tcp', asks('SPDY/3.1, tcp')],
        ['tcp', asks('SPDY/3.1\r\nUpgrade: tcp')],
      ] as const;
      for (const [to, request] of cases) {
        const upstream = await startSwitching(t, to);
        const policies = policyFile('name: all, route: "* *", identifier: ip, limit: 9, window: 366d');
        const { port, sample } = await startTestGateway(t, { upstream, policies, env });
        const client = sendRaw(port, request);
        const text = await client.until(/\r\n\r\n/);
        t.match(text, /^HTTP\/1\.1 101 /, request);
        t.match(text, new RegExp(`\r\nUpgrade: ${to}\r\n`));
        t.match(text, /\r\nConnection: upgrade\r\n/i);
        t.match(text, /\r\nx-ratelimit-remaining: 8\r\n/);
        client.socket.write('<ping');
        await client.until(/<ping$/);
        const held = (): number => sample('floodgate_held', { bound: 'upgrades' });
        t.equal(held(), 1);
        client.socket.destroy();
        await until(() => held() === 0, 'the place is given back');
      }
    },
  );

  t.test(`own parser ${parser}: 502 for a switch to another protocol than those asked for`, async (t) => {
    for (const to of ['h2c', 'websocket', 'tcp, SPDY/3.1', '']) {
      const upstream = await startSwitching(t, to);
      const { port } = await startTestGateway(t, { upstream, env });
      t.match(await sendRaw(port, asks('tcp, SPDY/3.1')).ended(), /^HTTP\/1\.1 502 /, to);
    }
  });

  t.test(`own parser ${parser}: 200: an upgrade that is not forwarded is an ordinary request`, async (t) => {
    const upstream = await startUpstream(t);
    let upgrades = 0;
    upstream.server.on('upgrade', (_req, socket) => {
      upgrades++;
      socket.end();
    });
    const { port } = await startTestGateway(t, { upstream, env });
    const others = [
      'h2c',
      'H2C',
      'HTTP/2.0',
      'TLS/1.0',
      'tls/1.2',
      'other',
      'tcp, h2c',
      'h2c, tcp',
      'tcp/2',
      ',',
    ];
    const requests = [
      ...others.flatMap((protocol) => [asks(protocol), asks(protocol, 'POST', 'Content-Length: 0\r\n')]),
      asks('websocket', 'POST'),
      asks('tcp\r\nUpgrade: h2c'),
      asks('tcp').replace('Connection: Upgrade\r\n', ''),
    ];
    for (const request of requests) {
      const client = sendRaw(port, request);
      const text = await client.until(/\}$/);
      t.match(text, /^HTTP\/1\.1 200 OK\r\n/, request);
      t.notMatch(text, /upgrade/i, request);
      client.socket.write('GET /next HTTP/1.1\r\nHost: a.test\r\n\r\n');
      await client.until(/"url":"\/next"/);
      client.socket.destroy();
    }
    t.equal(upgrades, 0);
  });
}
