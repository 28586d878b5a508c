/** The public listener with TLS, as curl and openssl meet it. */
import t from 'tap';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { run } from '#test/support/tls-client.ts';

const authority = createAuthority(t);
const { ca } = authority;
const { cert, key } = authority.issue('server', 'IP:127.0.0.1,DNS:localhost');
const { port } = await startTestGateway(t, { env: { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key } });

t.test('curl, also if it offers HTTP/2', async (t) => {
  for (const option of ['--http1.1', '--http2']) {
    const args = ['-sS', '-D', '-', option, '--cacert', ca, `https://127.0.0.1:${port}/from-curl`];
    const { output, code } = await run('curl', args);
    t.equal(code, 0, output);
    t.match(output, 'HTTP/1.1 200');
    t.match(output, '"url":"/from-curl"');
  }
});

t.test('TLS 1.2 and 1.3; nothing older, no other protocol, no renegotiation', async (t) => {
  const openssl = (...args: string[]) =>
    run('openssl', ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', ca, ...args]);
  t.match((await openssl('-tls1_2')).output, /Protocol *: TLSv1\.2/);
  t.match((await openssl('-tls1_3')).output, /New, TLSv1\.3/);
  t.match((await openssl('-tls1_1', '-cipher', 'DEFAULT@SECLEVEL=0')).output, /alert protocol version/);
  t.match((await openssl('-alpn', 'http/1.1')).output, /ALPN protocol: http\/1\.1/);
  t.match((await openssl('-alpn', 'spdy/3')).output, /no application protocol/);
  const { output } = await run(
    'openssl',
    ['s_client', '-connect', `127.0.0.1:${port}`, '-CAfile', ca, '-tls1_2', '-crlf'],
    { when: /Verify return code/, text: 'R\n' },
  );
  t.match(output, /RENEGOTIATING[\s\S]*(no renegotiation|handshake failure)/);
});
