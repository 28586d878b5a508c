/** Guesses are limited, and no request gets a 500. */

import t from 'tap';
import { anyText } from '#test/support/any-text.ts';
import { startApi } from '#test/support/api-app.ts';
import { fc } from '#test/support/fast-check.ts';
import { openBrowser } from '#test/support/login.ts';

const owner = { email: 'owner@example.com', password: 'Password1' };
const signIn = '/api/auth/sign-in/email';

t.test('429: after forty wrong passwords in an hour', async (t) => {
  const api = await startApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  const browser = openBrowser(api);
  const statuses: number[] = [];
  for (let i = 0; i < 40; i++)
    statuses.push((await api.client('POST', signIn, { ...owner, password: 'Wrong1234' })).status);
  t.ok(
    statuses.every((status) => status === 401),
    statuses.join(),
  );
  t.match(await api.client('POST', signIn, owner), {
    status: 429,
    json: { code: 'too_many_requests' },
    headers: { 'retry-after': '3600', 'x-retry-after': '3600' },
  });
  t.equal((await api.client('POST', '/api/auth/verify-email', { token: 'x' })).status, 429);
  t.equal(
    (await browser.logIn(owner.email, owner.password)).status,
    200,
    'the gateway limits the older login',
  );
  api.advance(3_600_001);
  t.equal((await api.client('POST', signIn, owner)).status, 200);
});

t.test('sign-up and related routes share the limits of the older routes', async (t) => {
  const api = await startApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  const pairs = [
    [5, '/api/auth/request-password-reset', '/api/auth/forgot-password'],
    [10, '/api/auth/send-verification-email', '/api/auth/resend-verification'],
    [30, '/api/auth/sign-up/email', '/api/auth/signup'],
  ] as const;
  for (const [limit, newer, older] of pairs) {
    for (let i = 0; i < limit; i++) {
      const { status } = await api.client('POST', i % 2 === 0 ? newer : older, { email: 'x' });
      t.equal(status, 400);
    }
    for (const url of [newer, older])
      t.equal((await api.client('POST', url, { email: 'x' })).status, 429, url);
  }
});

const routes = [
  ...['sign-in/email', 'sign-out', 'sign-up/email', 'request-password-reset', 'reset-password'],
  ...['send-verification-email', 'verify-email'],
].map((name) => `/api/auth/${name}`);

t.test('wrong types, odd texts and huge bodies: 4xx with a message', async (t) => {
  const api = await startApi(t, {
    parts: () => ({ passwords: { hash: async () => 'x', verify: async () => false } }),
  });
  for (const url of routes) {
    for (const body of [
      '',
      '[]',
      'null',
      '"x"',
      '1',
      '{',
      '{"email":{"$gt":""},"password":[]}',
      '{"__proto__":{}}',
    ]) {
      const reply = await api.client('POST', url, body);
      if (reply.status === 200 && url.endsWith('sign-out')) continue;
      t.equal(reply.status, 400, `${url} ${body}`);
      t.match(reply.json, { code: /./, message: /./ });
    }
    const huge = await api.client('POST', url, JSON.stringify({ email: 'x'.repeat(2_200_000) }));
    t.match(huge, { status: 413, json: { code: 'payload_too_large' } }, url);
  }
  const value = fc.oneof(anyText(), fc.constantFrom(null, true, 1, [], {}, 'owner@example.com'));
  const names = [
    'email',
    'password',
    'name',
    'token',
    'newPassword',
    'callbackURL',
    'redirectTo',
    'rememberMe',
  ];
  const bodies = fc.dictionary(fc.constantFrom(...names), value);
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...routes), bodies, async (url, body) => {
      const { status } = await api.client('POST', url, body);
      return status < 500;
    }),
    { numRuns: 150 },
  );
  t.pass('no reply is a 500');
});
