import t from 'tap';
import { createSigner, loadSigningSecret } from '#api/auth/signer.ts';
import { migrate } from '#api/db/migrate.ts';
import { countingRandom } from '#test/support/api-app.ts';
import { openPrivateDatabase } from '#test/support/database.ts';

t.test('a signature is the HMAC-SHA-256 in hexadecimal', async (t) => {
  // This is test case 2 of RFC 4231.
  const signer = createSigner(Buffer.from('Jefe'));
  const expected = '5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843';
  t.equal(signer.sign('what do ya want for nothing?'), expected);
  t.ok(signer.verify('what do ya want for nothing?', expected));
  t.notOk(signer.verify('what do ya want for something?', expected));
  for (const wrong of ['', 'zz', expected.slice(2), `${expected}00`]) {
    t.notOk(signer.verify('what do ya want for nothing?', wrong), wrong);
  }
});

t.test('creates the secret once', async (t) => {
  const db = await openPrivateDatabase(t);
  await migrate(db);
  const random = countingRandom();
  const first = await loadSigningSecret(db, random, () => 0);
  t.equal(first.length, 32);
  t.strictSame(await loadSigningSecret(db, random, () => 0), first);
});
