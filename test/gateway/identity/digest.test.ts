import { createHmac, hash } from 'node:crypto';
import t from 'tap';
import { Digester, identityFrom, identityOf, lastBits } from '#gateway/identity/digest.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';

const IP: SimpleIdentifier = { name: 'ip', kind: 'address', ipv6Prefix: 64 };
const KEY: SimpleIdentifier = {
  name: 'key',
  kind: 'credential',
  sources: [{ kind: 'header', header: 'x-api-key' }],
};

t.test('a digest has a fixed length and reveals nothing', async (t) => {
  const digester = new Digester('salt');
  for (const value of ['1.2.3.4', '2001:db8::/64', 'fbk_secret', 'x'.repeat(10_000), '\xff', 'untrusted']) {
    const { digest, words } = digester.identify(KEY, value);
    t.match(digest, /^[\w-]{22}$/);
    t.notOk(digest.includes(value));
    for (const word of words) t.ok(Number.isInteger(word) && word >= 0 && word < 2 ** 30);
  }
});

t.test('a digest is an HMAC-SHA-256 that other implementations can compute', async (t) => {
  for (const salt of ['salt', '', 'ü'.repeat(100), 'x'.repeat(64)]) {
    const expected = createHmac('sha256', hash('sha256', salt, 'hex'))
      .update('credential\0key\0fbk_ä')
      .digest()
      .subarray(0, 16)
      .toString('base64url');
    t.equal(new Digester(salt).identify(KEY, 'fbk_ä').digest, expected);
  }
});

t.test(
  'an address has one identity under every name; a credential has one for each identifier',
  async (t) => {
    const digester = new Digester('salt');
    const digest = (identifier: SimpleIdentifier, value: string) =>
      digester.identify(identifier, value).digest;
    t.equal(digest(IP, '1.2.3.4'), digest({ ...IP, name: 'client' }, '1.2.3.4'));
    t.not(digest(KEY, 'k'), digest({ ...KEY, name: 'tenant' }, 'k'));
    t.not(digest(KEY, 'k'), digest(KEY, 'K'));
    for (const name of ['address', 'ip', 'key'])
      t.not(
        digest({ ...KEY, name }, '1.2.3.4'),
        digest(IP, '1.2.3.4'),
        'a credential that looks like an address has another digest',
      );
  },
);

t.test('with ignoresCase, spellings that databases take for the same key have one digest', async (t) => {
  const digester = new Digester('salt');
  const digest = (value: string, ignoresCase = true): string =>
    digester.identify(
      ignoresCase ? { name: 'key', kind: 'credential', sources: [], ignoresCase } : KEY,
      Buffer.from(value).toString('latin1'),
    ).digest;
  for (const spelling of ['FBK_A1', 'Fbk_a1', 'fbk_\u00e11', 'fbk_a1\u200b'])
    t.equal(digest(spelling), digest('fbk_a1'), spelling);
  t.equal(digest('fbk_a1'), digest('fbk_a1', false), 'keys in lower case keep their counters');
  t.not(digest('fbk_a1'), digest('fbk_a2'));
  t.not(digest('\xff'), digest('\xfe'));
});

t.test('the words encode the first 120 bits of the digest', async (t) => {
  t.strictSame(identityOf('AAAAABAAAAC_____AAAAAB').words, [0, 2 ** 24, 3 * 2 ** 24 - 1, 63 * 2 ** 24]);
});

t.test('a digest can be built again from its words and its last bits', async (t) => {
  const digester = new Digester('salt');
  for (let i = 0; i < 1000; i++) {
    const identity = digester.identify(KEY, `fbk_${i}`);
    if (lastBits(identity.digest) > 255) t.fail(identity.digest);
    t.strictSame(identityFrom(identity.words, lastBits(identity.digest)), identity);
  }
});
