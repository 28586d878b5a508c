/** Tests a private authority with certificates for both sides, and every mismatch. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readStoreTls, type StoreTls } from '#gateway/store/access.ts';
import type { TlsFiles } from '#gateway/store/address.ts';
import { createAuthority } from '#test/support/certificates.ts';
import { startRedis } from '#test/support/redis.ts';
import { startTlsRedis } from '#test/support/redis-tls.ts';
import { COUNT, storeAt } from '#test/support/store.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const none: TlsFiles = { ca: '', cert: '', key: '' };
function tlsOf(tlsFiles: TlsFiles): StoreTls {
  const tls = readStoreTls({ tls: true, tlsFiles });
  if (tls === null) throw new Error('the address asks for TLS');
  return tls;
}

const here = 'IP:127.0.0.1,DNS:localhost';

t.test('trusts a private authority that is configured, and only for matching names', async (t) => {
  const authority = createAuthority(t);
  const redis = await startTlsRedis(t, authority, { authClients: false, names: here });
  const tls = tlsOf({ ...none, ca: authority.ca });
  for (const host of ['127.0.0.1', 'localhost']) {
    const store = storeAt(t, `rediss://${host}:${redis.port}`, { tls });
    await store.connect();
    t.equal(await store.run(COUNT, [host], ['f']), 1, host);
  }
  const told = async (url: string, tls: StoreTls | null, sentence: RegExp): Promise<void> => {
    const store = storeAt(t, url, { tls });
    await t.rejects(store.connect(), { message: sentence });
    t.match(store.whyDown().message, sentence);
    t.equal(store.ready, false);
  };
  const url = `rediss://127.0.0.1:${redis.port}`;
  await told(url, {}, /comes from an authority that is not trusted: add \?ca=FILE to GATEWAY_REDIS_URL/);
  const stranger = createAuthority(t);
  await told(url, tlsOf({ ...none, ca: stranger.ca }), /not trusted/);
  await told(url.replace('rediss', 'redis'), null, /closed/);

  const plain = await startRedis(t);
  await told(
    plain.url.replace('redis', 'rediss'),
    {},
    /if the address begins with rediss, does it speak TLS\?/,
  );

  const elsewhere = await startTlsRedis(t, authority, {
    authClients: false,
    names: 'DNS:elsewhere.example',
  });
  await told(`rediss://127.0.0.1:${elsewhere.port}`, tls, /altnames/);
});

t.test('a server that requires a client certificate', async (t) => {
  const authority = createAuthority(t);
  const redis = await startTlsRedis(t, authority, { authClients: true, names: here });
  const url = `rediss://127.0.0.1:${redis.port}`;
  const { cert, key } = authority.issue('gateway', 'DNS:gateway');
  const store = storeAt(t, url, { tls: tlsOf({ ca: authority.ca, cert, key }) });
  await store.connect();
  t.equal(await store.run(COUNT, ['k'], ['f']), 1);

  const without = storeAt(t, url, { tls: tlsOf({ ...none, ca: authority.ca }) });
  await t.rejects(without.connect(), { message: /does not accept our certificate|closed/ });
});

t.test('unusable files are reported in one sentence', async (t) => {
  const authority = createAuthority(t);
  const ours = authority.issue('ours', 'DNS:ours');
  const others = authority.issue('others', 'DNS:others');
  const junk = join(temporaryFolder(t), 'junk.pem');
  writeFileSync(junk, 'not a certificate');
  const gone = join(temporaryFolder(t), 'gone.pem');
  rmSync(gone, { force: true });
  const { ca } = authority;
  for (const [tls, tlsFiles, told] of [
    [false, { ...none, ca }, /^ca would have no effect: for TLS the address begins with rediss/],
    [false, { ...none, ...ours }, /^cert and key would have no effect/],
    [true, { ...none, ca: gone }, /^ca: .*gone\.pem cannot be read \(ENOENT\)/],
    [true, { ...none, ca: junk }, /^ca: .*junk\.pem is not in PEM format/],
    [true, { ca, cert: ours.cert, key: '' }, /^cert and key belong together/],
    [true, { ca, cert: '', key: ours.key }, /^cert and key belong together/],
    [true, { ca, cert: ours.cert, key: others.key }, /^key: .* is not the unencrypted PEM key/],
    [true, { ca, cert: ours.cert, key: ours.cert }, /^key: .* is not the unencrypted PEM key/],
  ] as const) {
    t.throws(() => readStoreTls({ tls, tlsFiles }), { message: told });
  }
  t.equal(readStoreTls({ tls: false, tlsFiles: none }), null);
  t.strictSame(tlsOf(none), {});
});
