/** Tests preflights of refused clients: the page must be able to read the refusal of the request that follows. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import { isPreflight } from '#gateway/reply/preflight.ts';
import { BEHIND_PROXY, policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { send } from '../proxy/exchange.ts';

const PREFLIGHT = { origin: 'https://shop.example', 'access-control-request-method': 'POST' };
const CLIENT = '/api/v1/client/displays';
const ALLOWED = {
  'access-control-allow-origin': '*',
  'access-control-allow-methods': '*',
  'access-control-allow-headers': '*, Authorization',
  'cache-control': 'no-store',
};
const OF_THE_GATEWAY = { status: 204, headers: ALLOWED, body: Buffer.from('') };
t.test('a preflight has Origin and Access-Control-Request-Method', async (t) => {
  const fields = Object.entries(PREFLIGHT).flat();
  t.equal(isPreflight('OPTIONS', fields), true);
  t.equal(isPreflight('OPTIONS', fields.slice(0, 2)), false);
  t.equal(isPreflight('OPTIONS', fields.slice(2)), false);
  t.equal(isPreflight('POST', fields), false);
  t.equal(isPreflight('OPTIONS', ['ORIGIN', 'null', 'ACCESS-CONTROL-REQUEST-METHOD', 'GET']), true);
});

for (const parser of ['0', '1'])
  t.test(`banned clients, GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const log = join(temporaryFolder(t), 'access.log');
    const asked: string[] = [];
    const upstream = await startUpstream(t, (req, res) => {
      asked.push(`${req.method} ${req.url}`);
      res.end('{}');
    });
    const decisionPort = await freePort();
    const { port, gateway } = await startTestGateway(t, {
      upstream,
      policies: policyFile(),
      env: {
        GATEWAY_OWN_PARSER: parser,
        GATEWAY_ACCESS_LOG: log,
        GATEWAY_DECISION_PORT: String(decisionPort),
        ...BEHIND_PROXY,
      },
    });
    const digester = new Digester(await gateway.control.salt());
    const identity = digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, '192.0.2.7');
    await gateway.control.ban(identity, 60_000, 'why');
    const from = { 'x-forwarded-for': '192.0.2.7' };
    const preflight = await send(port, CLIENT, { method: 'OPTIONS', headers: { ...PREFLIGHT, ...from } });
    t.match(preflight, OF_THE_GATEWAY);
    t.strictSame(asked, [], 'nothing is forwarded');
    const id = preflight.headers['x-gateway-decision'];
    t.match(await gateway.findDecision(String(id)), { decision: 'banned', method: 'OPTIONS' });
    const lines = (): string[] => readFileSync(log, 'utf8').split('\n').slice(0, -1);
    await until(() => lines().length > 0);
    t.match(JSON.parse(lines()[0] ?? ''), { method: 'OPTIONS', status: 204, decision: 'banned', id });

    const fields = Object.entries({ ...PREFLIGHT, ...from }).map(
      ([field, value]) => `${field}: ${value}\r\n`,
    );
    const waiting = `OPTIONS ${CLIENT} HTTP/1.1\r\nHost: a\r\n${fields.join('')}Expect: 100-continue\r\nContent-Length: 9\r\n\r\n`;
    const connection = sendRaw(port, waiting);
    await connection.until(/^HTTP\/1\.1 204 [\s\S]*Connection: close[\s\S]*\r\n\r\n$/);
    connection.socket.destroy();

    for (const path of ['/forward-auth', '/auth-request']) {
      const question = { 'x-forwarded-method': 'OPTIONS', 'x-forwarded-uri': CLIENT };
      const answer = await send(decisionPort, path, { headers: { ...PREFLIGHT, ...from, ...question } });
      t.ok(answer.status >= 400, `${path}: after a 204 the proxy would forward the preflight`);
    }
    t.strictSame(asked, []);
  });
