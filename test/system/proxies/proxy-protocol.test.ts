/** The PROXY protocol as curl and HAProxy speak it. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { values } from '#test/gateway/proxy/exchange.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway } from '#test/support/gateway.ts';
import { freePort } from '#test/support/ports.ts';
import { projectRoot } from '#test/support/process.ts';
import { startHaproxy } from '#test/support/proxy-process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { run } from '#test/support/tls-client.ts';

const TRUSTING = { GATEWAY_PROXY_PROTOCOL: '1', GATEWAY_TRUSTED_PROXIES: '127.0.0.1' };

t.test('curl and HAProxy, versions 1 and 2, with TLS behind the header', async (t) => {
  const authority = createAuthority(t);
  const { cert, key } = authority.issue('server', 'IP:127.0.0.1');
  const plain = await startTestGateway(t, { env: TRUSTING });
  const tls = await startTestGateway(t, {
    env: { ...TRUSTING, GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key },
  });
  const folder = temporaryFolder(t);
  const ports = { one: await freePort(), two: await freePort(), tls: await freePort() };
  writeFileSync(
    join(folder, 'haproxy.cfg'),
    `
defaults
  mode tcp
  timeout connect 5s
  timeout client 30s
  timeout server 30s
listen one
  bind 127.0.0.1:${ports.one}
  server gateway 127.0.0.1:${plain.port} send-proxy
listen two
  bind 127.0.0.1:${ports.two}
  server gateway 127.0.0.1:${plain.port} send-proxy-v2 proxy-v2-options unique-id,crc32c
listen tls
  bind 127.0.0.1:${ports.tls}
  server gateway 127.0.0.1:${tls.port} send-proxy-v2 check check-send-proxy check-ssl verify none
`,
  );
  await startHaproxy(t, join(folder, 'haproxy.cfg'), ports.one);
  const curl = async (...args: string[]): Promise<string[]> => {
    const { output, code } = await run('curl', ['-sS', '--max-time', '20', ...args]);
    if (code !== 0) return [output];
    return values(JSON.parse(output).headers, 'x-forwarded-for');
  };
  const source = ['--interface', '127.0.0.77'];
  t.strictSame(await curl('--haproxy-protocol', `http://127.0.0.1:${plain.port}/a`), ['127.0.0.1']);
  t.strictSame(await curl(...source, `http://127.0.0.1:${ports.one}/a`), ['127.0.0.77']);
  t.strictSame(await curl(...source, `http://127.0.0.1:${ports.two}/a`), ['127.0.0.77']);
  t.strictSame(await curl(...source, '--cacert', authority.ca, `https://127.0.0.1:${ports.tls}/a`), [
    '127.0.0.77',
  ]);
});

t.test('HAProxy with the file of the examples', async (t) => {
  const { port } = await startTestGateway(t, { env: TRUSTING });
  const front = await freePort();
  const example = readFileSync(join(projectRoot, 'examples/behind-another-proxy/haproxy.cfg'), 'utf8');
  const file = join(temporaryFolder(t), 'haproxy.cfg');
  writeFileSync(file, example.replace('127.0.0.1:8080', `127.0.0.1:${port}`).replace(':8000', `:${front}`));
  await startHaproxy(t, file, front);
  const { output, code } = await run('curl', [
    '-sS',
    '--interface',
    '127.0.0.77',
    `http://127.0.0.1:${front}/a`,
  ]);
  t.equal(code, 0);
  t.strictSame(values(JSON.parse(output).headers, 'x-forwarded-for'), ['127.0.0.77']);
});
