/** One-time codes: the vectors of RFC 6238, one step of tolerance, and the address for authenticator apps. */
import t from 'tap';
import { stepAt, stepOf, totpCode, totpUri } from '#api/auth/totp.ts';

const secret = Buffer.from('12345678901234567890');

t.test('computes the codes of RFC 6238, appendix B, for SHA-1', async (t) => {
  const vectors: readonly (readonly [seconds: number, code: string])[] = [
    [59, '94287082'],
    [1111111109, '07081804'],
    [1111111111, '14050471'],
    [1234567890, '89005924'],
    [2000000000, '69279037'],
    [20000000000, '65353130'],
  ];
  for (const [seconds, code] of vectors) {
    t.equal(totpCode(secret, stepAt(seconds * 1000)), code.slice(-6), `${seconds} s`);
  }
});

t.test('accepts the codes of the steps before and after, and no others', async (t) => {
  const now = 1_234_567_890_000;
  const step = stepAt(now);
  const found = [-2, -1, 0, 1, 2].map((off) => stepOf(secret, totpCode(secret, step + off), now));
  t.strictSame(found, [null, step - 1, step, step + 1, null]);
});

t.test('refuses a malformed code', async (t) => {
  for (const code of [
    '',
    '12345',
    '1234567',
    '12345a',
    '１２３４５６',
    ' 005924',
    '-05924',
    '0'.repeat(1000),
  ]) {
    t.equal(stepOf(secret, code, 1_234_567_890_000), null, code.slice(0, 10));
  }
});

t.test('the otpauth: address has the secret in Base32 and escapes names', async (t) => {
  t.equal(
    totpUri(secret, { issuer: 'A & B', account: 'ada@example.com' }),
    'otpauth://totp/A%20%26%20B:ada%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=A%20%26%20B&digits=6&period=30',
  );
});
