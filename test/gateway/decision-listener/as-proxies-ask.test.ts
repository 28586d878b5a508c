/**
 * Sends requests to a real gateway as Traefik and Envoy write them, by their documentation and sources. Debian has no
 * package of either.
 */
import t from 'tap';
import { BEHIND_PROXY, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { sendRaw } from '#test/support/raw.ts';

const ROWS = [
  'name: upload, route: "POST /api/upload/{name}", identifier: ip, limit: 2, window: 366d',
  'name: keys, route: "* /api/keys/*", identifier: api-key, limit: 2, window: 366d',
];

/**
 * forwardAuth of Traefik 3 sends the header section of the request without hop-by-hop fields, and fields of its own.
 */
const traefik = (from: string): string =>
  [
    'GET /forward-auth HTTP/1.1',
    'Host: 127.0.0.1:9091',
    'User-Agent: curl/8.5.0',
    'Accept: */*',
    'Content-Type: application/octet-stream',
    `X-Forwarded-For: ${from}`,
    'X-Forwarded-Host: example.org',
    'X-Forwarded-Method: POST',
    'X-Forwarded-Port: 443',
    'X-Forwarded-Proto: https',
    'X-Forwarded-Server: edge-1',
    'X-Forwarded-Uri: /api/upload/a%20picture?size=2',
    'X-Real-Ip: 192.0.2.1',
    'Accept-Encoding: gzip',
    '',
    '',
  ].join('\r\n');

/** ext_authz of Envoy over HTTP sends lower-case names, the method and the path of the request, and no body. */
const envoy = (from: string): string =>
  [
    'POST /ext-authz/api/keys/1?x=%2F HTTP/1.1',
    'host: example.org',
    'content-length: 0',
    'x-api-key: fbk_1',
    `x-forwarded-for: ${from}`,
    'x-envoy-internal: true',
    'x-envoy-expected-rq-timeout-ms: 1000',
    '',
    '',
  ].join('\r\n');

for (const [name, write] of Object.entries({ traefik, envoy })) {
  t.test(name, async (t) => {
    const decision = await freePort();
    await startTestGateway(t, {
      upstream: 'http://127.0.0.1:9',
      policies: policyFile(...ROWS),
      env: { GATEWAY_DECISION_PORT: String(decision), ...BEHIND_PROXY },
    });
    // Both proxies keep their connection, so all requests use one.
    const { socket, until } = sendRaw(decision, write('192.0.2.1'));
    t.match(
      await until(/\r\n\r\n$/),
      /^HTTP\/1\.1 200 OK\r\n[\s\S]*Content-Length: 0\r\n[\s\S]*x-ratelimit-remaining: 1\r\n/,
    );
    socket.write(write('192.0.2.1'));
    await until(/x-ratelimit-remaining: 0/);
    socket.write(write('192.0.2.1'));
    t.match(
      await until(/"decision":"[^"]+"\}$/),
      /HTTP\/1\.1 429 Too Many Requests\r\n[\s\S]*x-gateway-ratelimited: true\r\n/,
    );
    if (name === 'traefik') {
      socket.write(write('192.0.2.2'));
      t.match(
        await until(/x-ratelimit-remaining: 1[\s\S]*x-ratelimit-remaining: 1/),
        '200',
        'another client is admitted',
      );
    }
    socket.destroy();
  });
}
