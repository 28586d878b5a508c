import t from 'tap';
import { hashPassword, normalizeEmail, passwordProblem, verifyPassword } from '#api/auth/password.ts';
import { countingRandom } from '#test/support/api-app.ts';

t.test('what a password needs', async (t) => {
  t.equal(passwordProblem('Password1'), null);
  t.equal(passwordProblem('Ärgerlich9'), null, 'upper case beyond ASCII');
  for (const wrong of ['Passw1', `Aa1${'x'.repeat(126)}`, 'password1', 'Password']) {
    t.type(passwordProblem(wrong), 'string', wrong);
  }
});

t.test('a hash verifies its password only, and differs each time', async (t) => {
  const random = countingRandom();
  const stored = await hashPassword('Password1', random);
  t.match(stored, /^scrypt\$65536\$8\$1\$[\w-]{22}\$[\w-]{43}$/);
  t.ok(await verifyPassword('Password1', stored));
  t.notOk(await verifyPassword('Password2', stored));
  t.not(await hashPassword('Password1', random), stored);
  t.notOk(await verifyPassword('Password1', 'bcrypt$x'), 'a stored text of another kind');
});

t.test('addresses', async (t) => {
  t.equal(normalizeEmail(' Me@Example.COM '), 'me@example.com');
  for (const wrong of ['', 'me', 'me@x', 'a b@x.y', `${'x'.repeat(250)}@x.example`]) {
    t.equal(normalizeEmail(wrong), null, wrong);
  }
});
