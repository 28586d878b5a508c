import t from 'tap';
import { createPasswords, normalizeEmail, passwordProblem } from '#api/auth/password.ts';
import { countingRandom } from '#test/support/api-app.ts';

t.test('refuses passwords that are too short or long, or lack a digit or an upper-case letter', async (t) => {
  for (const right of ['Passwor1', `Pa1${'x'.repeat(125)}`]) t.equal(passwordProblem(right), null, right);
  t.equal(passwordProblem('Ärgerlich9'), null, 'Ä is an upper-case letter');
  for (const wrong of ['Passwo1', `Aa1${'x'.repeat(126)}`, 'password1', 'Password']) {
    t.type(passwordProblem(wrong), 'string', wrong);
  }
});

t.test('a hash verifies only its own password, and two hashes of one password differ', async (t) => {
  const random = countingRandom();
  const passwords = createPasswords(random);
  const stored = await passwords.hash('Password1');
  t.match(stored, /^\$argon2id\$v=19\$m=19456,t=2,p=1\$[\w+/]{22}\$[\w+/]{43}$/);
  t.ok(await passwords.verify('Password1', stored));
  t.notOk(await passwords.verify('Password2', stored));
  t.not(await passwords.hash('Password1'), stored);
  t.notOk(await passwords.verify('Password1', 'bcrypt$x'), 'another format verifies nothing');
  t.notOk(await passwords.verify('Password1', null));
});

t.test('verifies a hash that another program made', async (t) => {
  const { argon2Sync } = await import('node:crypto');
  const hash = argon2Sync('argon2id', {
    message: 'Password1',
    nonce: 'somesalt12345678',
    parallelism: 2,
    tagLength: 32,
    memory: 1024,
    passes: 3,
  });
  const stored = `$argon2id$v=19$m=1024,t=3,p=2$c29tZXNhbHQxMjM0NTY3OA$${hash.toString('base64').replace('=', '')}`;
  t.ok(await createPasswords(countingRandom()).verify('Password1', stored));
});

t.test('normalizes valid email addresses, and refuses others', async (t) => {
  t.equal(normalizeEmail(' Me@Example.COM '), 'me@example.com');
  t.equal(normalizeEmail("o'brien+x@mail.example.co"), "o'brien+x@mail.example.co");
  for (const wrong of [
    '',
    'me',
    'me@x',
    'a b@x.y',
    `${'x'.repeat(250)}@x.example`,
    'a,b@x.y',
    '<a@x.y>',
    'a@x.y\r\nBcc: b@x.y',
    'a\u0000@x.y',
    'a@x..y',
  ]) {
    t.equal(normalizeEmail(wrong), null, wrong);
  }
});
