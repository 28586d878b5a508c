/** Tests which certificate the gateway presents, and how it reacts to changed files. */
import { execFileSync } from 'node:child_process';
import { createPrivateKey } from 'node:crypto';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readConfig } from '#gateway/config.ts';
import { expiryWarning } from '#gateway/listen/tls/key-pair.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { secured } from '#test/support/tls-client.ts';
import { until } from '#test/support/until.ts';

const authority = createAuthority(t);
const { ca } = authority;
const first = authority.issue('first', 'IP:127.0.0.1');
const second = authority.issue('second', 'IP:127.0.0.1');

t.test('uses changed files, and keeps open connections', async (t) => {
  const folder = temporaryFolder(t);
  const [cert, key] = [join(folder, 'tls.crt'), join(folder, 'tls.key')];
  copyFileSync(first.cert, cert);
  copyFileSync(first.key, key);
  const upstream = await startUpstream(t, (_req, res) => res.end('ok'));
  const { port, gateway, log } = await startTestGateway(t, {
    upstream: upstream.origin,
    env: { GATEWAY_TLS_CERT: cert, GATEWAY_TLS_KEY: key },
  });
  const shown = async (): Promise<string> => {
    const socket = await secured(port, ca);
    const { CN } = socket.getPeerCertificate().subject;
    socket.destroy();
    return String(CN);
  };
  const said = (pattern: RegExp) => () => log.some(({ msg, reason }) => pattern.test(`${msg} ${reason}`));
  const sample = (name: string): number | undefined =>
    gateway.samples().find((one) => one.name === name)?.value;

  const open = await secured(port, ca);
  t.equal(await shown(), 'first');

  copyFileSync(second.cert, cert);
  await until(said(/refused; the old one stays in use .*is not the key of the first certificate/), 'refused');
  t.equal(await shown(), 'first', 'a key that does not fit its certificate changes nothing');
  t.equal(sample('floodgate_tls_reload_failures_total'), 1);

  copyFileSync(second.key, key);
  await until(said(/the new certificate is in use/), 'taken');
  t.equal(await shown(), 'second');
  t.equal(sample('floodgate_tls_reloads_total'), 1);
  t.ok((sample('floodgate_tls_certificate_expiry_seconds') ?? 0) > Date.now() / 1000);

  let answer = '';
  open.on('data', (chunk: Buffer) => (answer += chunk.toString()));
  open.write('GET / HTTP/1.1\r\nHost: a\r\n\r\n');
  await until(() => /ok$/.test(answer), 'the connection of before is served');
  open.destroy();

  gateway.reload();
  await until(() => sample('floodgate_tls_reloads_total') === 2, 'taken again when somebody asks');
});

t.test('unusable files are reported at start, with a fix', async (t) => {
  const folder = temporaryFolder(t);
  const file = (name: string, text: string): string => {
    writeFileSync(join(folder, name), text);
    return join(folder, name);
  };
  const refusal = (GATEWAY_TLS_CERT: string, GATEWAY_TLS_KEY: string): string => {
    try {
      readConfig({ GATEWAY_TLS_CERT, GATEWAY_TLS_KEY });
      return 'none';
    } catch (error) {
      return (error as Error).message;
    }
  };
  const cipher = { cipher: 'aes-256-cbc', passphrase: 'x' } as const;
  const locked = createPrivateKey(readFileSync(first.key)).export({
    type: 'pkcs8',
    format: 'pem',
    ...cipher,
  });
  const encrypted = file('encrypted.key', locked.toString());
  t.match(refusal(first.cert, ''), /GATEWAY_TLS_KEY: it must be set together with GATEWAY_TLS_CERT/);
  t.match(refusal('', first.key), /GATEWAY_TLS_CERT: it must be set together with GATEWAY_TLS_KEY/);
  t.match(refusal('/nowhere.crt', first.key), /\/nowhere\.crt cannot be read \(ENOENT\)/);
  t.match(refusal(first.cert, '/nowhere.key'), /\/nowhere\.key cannot be read \(ENOENT\)/);
  execFileSync('mkfifo', [join(folder, 'pipe')]);
  t.match(refusal(first.cert, join(folder, 'pipe')), /pipe cannot be read \(not a regular file\)/);
  t.match(refusal(file('no.crt', 'hello'), first.key), /no\.crt is not a certificate in PEM format/);
  t.match(refusal(first.cert, second.key), /second\.key is not the key of the first certificate/);
  t.match(refusal(first.cert, encrypted), /encrypted\.key is encrypted; .*openssl pkey/);
  t.match(refusal(first.cert, file('no.key', 'hello')), /no\.key cannot be used/);
  t.equal(refusal(first.cert, first.key), 'none');
  const chain = file('chain.crt', readFileSync(first.cert, 'utf8') + readFileSync(ca, 'utf8'));
  t.equal(refusal(chain, first.key), 'none');
});

t.test('warns of a certificate that expires within two weeks', async (t) => {
  const day = 86_400_000;
  const warning = (days: number): string | null =>
    expiryWarning({ cert: '', key: '', expiresAt: 100 * day + days * day }, '/etc/tls.crt', () => 100 * day);
  t.equal(warning(14), null);
  t.match(warning(13), /tls\.crt expires in 13 days; renew it/);
  t.match(warning(1), /expires in 1 day; renew it/);
  t.match(warning(-1), /tls\.crt has expired/);
});
