/** The cache of verified tokens has valid ones only, each until it expires. */
import t from 'tap';
import { Digester } from '#gateway/identity/digest.ts';
import type { TokenIdentifier, TokenSource } from '#gateway/identity/identifier.ts';
import { VerifiedTokens } from '#gateway/identity/verified-tokens.ts';
import { parseKeySet } from '#gateway/policy/keys/key-set.ts';
import { keySetText, newSigner, sign } from '#test/support/tokens.ts';

const signer = await newSigner('EdDSA', 'key');
const keys = parseKeySet(keySetText(signer), 'keys.json');
const source: TokenSource = {
  id: 0,
  carrier: { kind: 'bearer', prefix: '' },
  claim: 'sub',
  keys,
  issuer: null,
  audience: null,
};
const user: TokenIdentifier = { name: 'user', kind: 'token', sources: [source] };

t.test('all tokens with one claim have one identity, each until it expires', async (t) => {
  let now = 0;
  const tokens = new VerifiedTokens(new Digester('salt'), () => now);
  const first = await sign(signer, { sub: 'ada', exp: 100 });
  const second = await sign(signer, { sub: 'ada', exp: 1000 });
  const digest = (token: string) => tokens.find(user, source, token)?.identity.digest;
  t.ok(digest(first));
  t.equal(digest(first), digest(second));
  t.equal(digest(first), digest(first), 'the remembered identity is the same');
  now = 161_000;
  t.equal(digest(first), undefined, 'a remembered token expires');
  t.ok(digest(second));
  const other = { ...source, id: 1, claim: 'org' };
  t.equal(
    tokens.find({ ...user, sources: [other] }, other, second),
    null,
    'a token of another issuer is not accepted',
  );
});

t.test('a flood of forged tokens is not remembered', async (t) => {
  const tokens = new VerifiedTokens(new Digester('salt'), () => 0);
  const good = await sign(signer, { sub: 'ada' });
  const [head, body, signature = ''] = good.split('.');
  t.ok(tokens.find(user, source, good));
  const wrong = `AAAAAAAA${signature.slice(8)}`;
  for (let i = 0; i < 600; i++) {
    const payload = Buffer.from(JSON.stringify({ sub: `invented-${i}` })).toString('base64url');
    if (tokens.find(user, source, `${head}.${payload}.${wrong}`) !== null) t.fail('accepted');
  }
  t.equal(tokens.size, 1);
  t.ok(tokens.find(user, source, `${head}.${body}.${signature}`));
});
