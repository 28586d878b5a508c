/** Pages of the origins under `replies: cors` can read replies of a gateway that cannot serve; others: exchanges/cors.md. */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { send } from '../proxy/exchange.ts';

const ADMIN = 'https://admin.example.org';
const policies = policyFile().replace(
  'policies:',
  `replies: { cors: [{ origin: ${ADMIN}, credentials: true }] }\npolicies:`,
);

for (const parser of ['0', '1']) {
  const env = { GATEWAY_OWN_PARSER: parser };

  t.test(`408: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port, sample } = await startTestGateway(t, {
      policies,
      env: { ...env, GATEWAY_UPSTREAM_CONNECTIONS: '2', GATEWAY_WAITING: '4', GATEWAY_CLIENT_SHARE: '1' },
    });
    const upload = `POST /a HTTP/1.1\r\nHost: a\r\nOrigin: ${ADMIN}\r\nContent-Length: 100000\r\n\r\nx`;
    const slow = sendRaw(port, upload);
    await until(() => sample('floodgate_held', { bound: 'uploads' }) === 1);
    const next = sendRaw(port, upload, '127.0.0.2');
    t.teardown(() => next.socket.destroy());
    const reply = await slow.until(/\r\n\r\n/);
    slow.socket.destroy();
    t.match(reply, /^HTTP\/1\.1 408 /);
    t.match(reply, `Access-Control-Allow-Origin: ${ADMIN}\r\n`);
    t.match(reply, 'Access-Control-Allow-Credentials: true\r\n');
  });

  t.test(`503 at the door: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port, sample } = await startTestGateway(t, {
      policies,
      env: { ...env, GATEWAY_CONNECTIONS: '1', GATEWAY_CLIENT_SHARE: '1' },
    });
    const holding = sendRaw(port, '', '127.0.0.2');
    t.teardown(() => holding.socket.destroy());
    await until(() => sample('floodgate_held', { bound: 'connections' }) === 1);
    const refused = await send(port, '/a', { headers: { origin: ADMIN } });
    t.equal(refused.status, 503);
    t.equal(refused.headers['access-control-allow-origin'], ADMIN);
    t.equal(refused.headers['access-control-allow-credentials'], 'true');
    const silent = sendRaw(port, '');
    t.match(await silent.until(/\r\n\r\n/), 'Access-Control-Allow-Origin: *\r\n', 'without a request');
    silent.socket.destroy();
  });
}
