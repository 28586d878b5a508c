/** The gateway accepts the same tokens as jose, which made them. */
import { createHmac } from 'node:crypto';
import { createLocalJWKSet, jwtVerify } from 'jose';
import t from 'tap';
import { verifiedClaim } from '#gateway/identity/json-web-token.ts';
import { parseKeySet } from '#gateway/policy/keys/key-set.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';

const NOW = Date.parse('2026-11-20T10:00:00Z');
const SECONDS = NOW / 1000;
const base64url = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');

const signers = await Promise.all([
  newSigner('RS256', 'rsa'),
  newSigner('ES256', 'ec'),
  newSigner('EdDSA', 'ed'),
]);
const [rsa, ec, ed] = signers;
const stranger = await newSigner('RS256', 'rsa');
const text = keySetText(...signers);
const keys = parseKeySet(text, 'keys.json');
const rules = { claim: 'sub', issuer: null, audience: null };
const claimOf = (token: string, now = NOW) => verifiedClaim(token, { ...rules, keys }, now);

t.test('verifies what jose signs and verifies, with every algorithm', async (t) => {
  for (const signer of signers) {
    for (const header of [{}, { kid: undefined }, { typ: 'JWT' }]) {
      const token = await sign(signer, { sub: 'ada', exp: SECONDS + 60 }, header);
      t.match(claimOf(token), { value: 'ada' }, `${signer.algorithm} ${JSON.stringify(header)}`);
    }
  }
  t.match(claimOf(await sign(rsa, { sub: 7 as unknown as string })), { value: '7' });
});

t.test('refuses changed, forged and odd tokens, as jose does', async (t) => {
  const good = await sign(rsa, { sub: 'ada' });
  const [head = '', body = '', signature = ''] = good.split('.');
  const [ecHead = '', ecBody = '', ecSignature = ''] = (await sign(ec, { sub: 'ada' })).split('.');
  const other = base64url({ sub: 'eve' });
  const none = `${base64url({ alg: 'none', kid: 'rsa' })}.${body}.`;
  const hmacHead = base64url({ alg: 'HS256', kid: 'rsa' });
  const hmac = createHmac('sha256', JSON.stringify(rsa.jwk))
    .update(`${hmacHead}.${body}`)
    .digest('base64url');
  const flipped = Buffer.from(signature, 'base64url');
  flipped[10] = (flipped[10] ?? 0) ^ 1;
  const forged: Readonly<Record<string, string>> = {
    'another body': `${head}.${other}.${signature}`,
    'another signature': `${head}.${body}.${flipped.toString('base64url')}`,
    'no signature': `${head}.${body}.`,
    'alg none': none,
    'alg none with a signature': `${none}${signature}`,
    'the public key as a shared secret': `${hmacHead}.${body}.${hmac}`,
    "another key's name": `${base64url({ alg: 'RS256', kid: 'ec' })}.${body}.${signature}`,
    "another algorithm's name": `${base64url({ alg: 'ES256', kid: 'rsa' })}.${body}.${signature}`,
    'an unknown key': await sign(rsa, { sub: 'ada' }, { kid: 'gone' }),
    'a key of the same name': await sign(stranger, { sub: 'ada' }),
    'another hash': await sign(await newSigner('RS512', 'rsa'), { sub: 'ada' }),
    'an ES256 signature of zeros': `${ecHead}.${ecBody}.${Buffer.alloc(64).toString('base64url')}`,
    'an ES256 signature in DER': `${ecHead}.${ecBody}.${Buffer.concat([Buffer.from([0x30, 68, 2, 32]), Buffer.from(ecSignature, 'base64url')]).toString('base64url')}`,
    'an extension to be understood': `${base64url({ alg: 'RS256', kid: 'rsa', crit: ['b64'], b64: false })}.${body}.${signature}`,
    'four parts': `${good}.${signature}`,
    'two parts': `${head}.${body}`,
    'no base64url': `${head}.${body}=.${signature}`,
    'no JSON': `${Buffer.from('{').toString('base64url')}.${body}.${signature}`,
    empty: '',
  };
  const set = createLocalJWKSet(JSON.parse(text));
  for (const [what, token] of Object.entries(forged)) {
    t.equal(claimOf(token), null, what);
    await t.rejects(jwtVerify(token, set, { currentDate: new Date(NOW) }), what);
  }
  t.equal(claimOf(await sign(rsa, { sub: 'a'.repeat(9000) })), null, 'too long');
});

t.test('accepts tokens a minute before nbf and a minute after exp, for clocks that differ', async (t) => {
  const token = await sign(ed, { sub: 'ada', nbf: SECONDS, exp: SECONDS + 600 });
  t.equal(claimOf(token, NOW - 61_000), null);
  t.match(claimOf(token, NOW - 60_000), { value: 'ada' });
  t.match(claimOf(token, NOW + 659_999), { from: NOW - 60_000, until: NOW + 660_000 });
  t.equal(claimOf(token, NOW + 660_000), null);
  t.equal(claimOf(await sign(ed, { sub: 'ada', exp: 'never' as unknown as number }).catch(() => '')), null);
});

t.test('refuses a claim that is neither text nor a whole number', async (t) => {
  for (const sub of ['', 1.5, null, true, ['ada'], { id: 1 }, undefined])
    t.equal(
      claimOf(await sign(ec, { other: 1, ...(sub === undefined ? {} : { sub: sub as string }) })),
      null,
      JSON.stringify(sub),
    );
});

t.test('without a key id: the only key of its algorithm; with two keys the token is refused', async (t) => {
  const second = await newSigner('RS256', 'second');
  const token = await sign(rsa, { sub: 'ada' }, { kid: undefined });
  const two = parseKeySet(keySetText(rsa, second), 'keys.json');
  t.equal(verifiedClaim(token, { ...rules, keys: two }, NOW), null);
});

t.test('Ed25519 is a newer name of EdDSA (RFC 9864), in keys and tokens', async (t) => {
  const newer = await newSigner('Ed25519', 'newer');
  const set = parseKeySet(keySetText(ed, newer), 'keys.json');
  t.equal(set.length, 2);
  for (const signer of [ed, newer])
    for (const alg of ['EdDSA', 'Ed25519']) {
      const token = await sign({ ...signer, algorithm: alg }, { sub: 'ada' });
      t.match(verifiedClaim(token, { ...rules, keys: set }, NOW), { value: 'ada' }, `${signer.id} ${alg}`);
    }
  const token = await sign(rsa, { sub: 'ada' });
  t.equal(verifiedClaim(token, { ...rules, keys: set }, NOW), null);
});

t.test('keys of one name are all tried, up to four', async (t) => {
  const six = await Promise.all(Array.from({ length: 6 }, () => newSigner('ES256', 'same')));
  const set = parseKeySet(keySetText(...six, rsa), 'keys.json');
  const results = await Promise.all(
    six.map(async (signer) =>
      verifiedClaim(await sign(signer, { sub: 'ada' }), { ...rules, keys: set }, NOW),
    ),
  );
  t.strictSame(
    results.map((result) => result !== null),
    [true, true, true, true, false, false],
  );
  t.equal(
    verifiedClaim(await sign(await newSigner('ES256', 'same'), { sub: 'ada' }), { ...rules, keys: set }, NOW),
    null,
  );
});

t.test('key sets: ignores unusable keys, and reports forbidden ones', async (t) => {
  const of = (value: unknown) => () => parseKeySet(JSON.stringify(value), 'k.json');
  const unusable = [
    { ...rsa.jwk, use: 'enc' },
    { ...rsa.jwk, alg: 'PS256' },
    { kty: 'oct', k: 'c2VjcmV0' },
    { ...ec.jwk, key_ops: ['sign'] },
    { kty: 'EC', crv: 'P-521' },
  ];
  t.equal(of({ keys: [...unusable, ed.jwk] })().length, 1);
  t.throws(of({ keys: unusable }), {
    message: /k\.json has no key that can be used; write a JSON Web Key Set/,
  });
  t.throws(of({ keys: [{ ...rsa.jwk, d: 'secret' }] }), { message: /key 1 of k\.json is a private key/ });
  t.throws(of({ keys: [ed.jwk, { ...rsa.jwk, n: 'AQAB' }] }), { message: /key 2 of k\.json/ });
  t.throws(of({ keys: [{ ...ec.jwk, x: 'AA' }] }), { message: /key 1 of k\.json is damaged/ });
  t.throws(of({ keys: Array.from({ length: 101 }, () => ed.jwk) }), {
    message: /101 keys; write at most 100/,
  });
  for (const value of [null, [], {}, { keys: {} }, { keys: [1] }, 'text'])
    t.throws(of(value), { message: /is not a key set/ }, JSON.stringify(value));
  t.throws(() => parseKeySet(text.slice(0, 100), 'k.json'), { message: /k\.json is not JSON/ });
});

t.test('checks issuer and audience where they are required, as jose does', async (t) => {
  const jwks = createLocalJWKSet(JSON.parse(text));
  const payloads: readonly object[] = [
    {},
    { iss: 'https://id.example' },
    { iss: 'https://other.example' },
    { iss: ['https://id.example'] },
    { iss: 'https://id.example', aud: 'shop' },
    { iss: 'https://id.example', aud: ['forum', 'shop'] },
    { iss: 'https://id.example', aud: ['forum'] },
    { iss: 'https://id.example', aud: [] },
    { aud: 'desk' },
  ];
  let believed = 0;
  for (const [issuer, audience] of [
    [null, null],
    ['https://id.example', null],
    [null, ['shop', 'desk']],
    ['https://id.example', ['shop']],
  ] as const) {
    for (const payload of payloads) {
      const token = await sign(ed, { sub: 'ada', ...payload });
      const options = {
        currentDate: new Date(NOW),
        ...(issuer === null ? {} : { issuer }),
        ...(audience === null ? {} : { audience: [...audience] }),
      };
      const ofJose = await jwtVerify(token, jwks, options).then(
        () => true,
        () => false,
      );
      const verified = verifiedClaim(token, { claim: 'sub', keys, issuer, audience }, NOW);
      const what = JSON.stringify({ issuer, audience, payload });
      t.equal(verified !== null, ofJose, what);
      if (ofJose) believed++;
    }
  }
  t.ok(believed > 9, `${believed} tokens are accepted`);
});
