/** Pages of the origins under `replies: cors` can read replies of a gateway that cannot serve; others: exchanges/cors.md. */
import t from 'tap';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';
import { until } from '#test/support/until.ts';
import { type Answer, send, values } from '../proxy/exchange.ts';

const APP = 'https://app.example.org';
const ADMIN = 'https://admin.example.org';
const CORS = `replies:
  cors:
    - ${APP}
    - { origin: ${ADMIN}, credentials: true }
    - { origin: "*", route: GET /public/* }
`;

/** The CORS headers of an answer, without those that expose headers. */
function granted({ rawHeaders }: Answer): readonly (readonly string[])[] {
  return ['access-control-allow-origin', 'access-control-allow-credentials', 'vary'].map((name) =>
    values(rawHeaders, name),
  );
}

const FOR_ADMIN = [[ADMIN], ['true'], ['Origin']];
const ASKS = {
  'access-control-request-method': 'PUT',
  'access-control-request-headers': 'x-a, Authorization',
};

for (const parser of ['0', '1']) {
  const env = { GATEWAY_OWN_PARSER: parser };
  const policies = policyFile().replace('policies:', `${CORS}policies:`);

  t.test(`502, and its preflight: GATEWAY_OWN_PARSER=${parser}`, async (t) => {
    const { port } = await startTestGateway(t, {
      upstream: `http://127.0.0.1:${await freePort()}`,
      policies,
      env,
    });
    const headers = { origin: ADMIN };
    const failed = await send(port, '/a', { headers });
    t.equal(failed.status, 502);
    t.strictSame(granted(failed), FOR_ADMIN);
    const preflight = await send(port, '/a', { method: 'OPTIONS', headers: { ...headers, ...ASKS } });
    t.equal(preflight.status, 204);
    t.strictSame(granted(preflight), FOR_ADMIN);
  });

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
    t.strictSame(granted(refused), FOR_ADMIN);
    const silent = sendRaw(port, '');
    t.match(await silent.until(/\r\n\r\n/), 'Access-Control-Allow-Origin: *\r\n', 'without a request');
    silent.socket.destroy();
  });
}
