/** Random requests to the routes of accounts, v2 and v3 never get a 500 or show internals. */

import t from 'tap';
import { hashToken } from '#api/auth/session.ts';
import { anyText } from '#test/support/any-text.ts';
import { addSurvey, apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { fc } from '#test/support/fast-check.ts';

const RUNS = 60;

// Hashes are cheap here, because the test is not about them.
const api = await startApi(t, {
  parts: () => ({ passwords: { hash: async () => 'x', verify: async () => false } }),
});
const survey = await addSurvey(api, { type: 'link' });
await api.context.db.updateTable('users').set({ passwordHash: null }).execute();
const token = 'a session of this test';
const organization = await api.context.db.selectFrom('organizations').select('id').executeTakeFirstOrThrow();
const owner = await api.context.db.selectFrom('users').select('id').executeTakeFirstOrThrow();
const now = new Date(api.context.clock()).toISOString();
await api.context.db
  .insertInto('sessions')
  .values({
    hashedToken: hashToken(token),
    userId: owner.id,
    createdAt: now,
    expiresAt: '2030-01-01T00:00:00.000Z',
  })
  .execute();
const cookie = `next-auth.session-token=${encodeURIComponent(token)}`;
const csrf = await api.client('GET', '/api/auth/csrf');
const csrfCookie = String(csrf.headers['set-cookie']).split(';')[0] ?? '';
const cookies = `${cookie}; ${csrfCookie}`;
const csrfToken: string = csrf.json.csrfToken;

const writes: readonly (readonly ['POST' | 'PUT', string])[] = [
  ['POST', '/api/auth/callback/credentials'],
  ['POST', '/api/auth/callback/token'],
  ['POST', '/api/auth/signup'],
  ['POST', '/api/auth/forgot-password'],
  ['POST', '/api/auth/reset-password'],
  ['POST', '/api/auth/resend-verification'],
  ['PUT', '/api/v1/profile/email'],
  ['POST', '/api/v1/api-keys'],
  ['POST', `/api/v1/organizations/${organization.id}/workspaces`],
  ['PUT', `/api/v1/management/workspaces/${workspaceId}`],
  ['POST', '/api/v1/license/recheck'],
  ['POST', `/api/v1/management/surveys/${survey.id}/link-emails`],
];
const names = [
  'email',
  'password',
  'name',
  'token',
  'csrfToken',
  'callbackUrl',
  'json',
  'label',
  'workspacePermissions',
  'organizationAccess',
  'organizationId',
  'styling',
  '__proto__',
  'constructor',
];
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 3 }),
  fc.constantFrom(
    'me@example.com',
    'Password1',
    csrfToken,
    'true',
    workspaceId,
    'a\u0000b',
    '\ud800',
    'x'.repeat(5000),
    '//evil',
    'javascript:1',
    '\r\nset-cookie: a=b',
  ),
);
const record = fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 6 });
const asForm = (fields: Record<string, unknown>): string =>
  new URLSearchParams(
    Object.entries({ csrfToken, ...fields }).map(([key, value]) => [
      key,
      // An object may have a toString that is no function.
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  ).toString();
const body: fc.Arbitrary<string | Buffer> = fc.oneof(
  record.map((fields) => JSON.stringify({ csrfToken, ...fields })),
  record.map(asForm),
  fc.jsonValue().map((value) => JSON.stringify(value)),
  fc.uint8Array({ maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('%', '%zz=%', '{', '{"a":', '&&&===', '', 'a'.repeat(20_000), `{"a":${'['.repeat(200)}`),
);

const isSound = (status: number, text: string): boolean =>
  status < 500 && !/\.ts\b|node_modules|SQLITE|select |argon2id/i.test(text);

for (const [method, url] of writes) {
  t.test(`${method} ${url.replace(survey.id, '{id}')}`, async (t) => {
    await fc.assert(
      fc.asyncProperty(body, async (payload) => {
        const reply = await api.app.inject({ method, url, payload, headers: { cookie: cookies } });
        const location = String(reply.headers.location ?? '');
        const isHome = location === '' || location.startsWith('https://feedback.example.com');
        return isSound(reply.statusCode, reply.body) && isHome;
      }),
      { numRuns: RUNS },
    );
    t.pass(`${RUNS} bodies`);
  });
}

t.test('a random cookie gets no 500', async (t) => {
  const names = ['next-auth.session-token', '__Secure-next-auth.session-token', 'next-auth.csrf-token', 'x'];
  const values = fc.oneof(
    fc.string({ maxLength: 50 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, '')),
    fc.constantFrom('%', '%zz', '|', 'x'.repeat(10_000), '%00', ';;;', '=', '__proto__'),
  );
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...names), values, async (name, value) => {
      const headers = { cookie: `${name}=${value}` };
      for (const url of ['/api/auth/session', '/api/v1/me', '/api/auth/csrf']) {
        const reply = await api.app.inject({ method: 'GET', url, headers });
        if (!isSound(reply.statusCode, reply.body)) return false;
      }
      return true;
    }),
    { numRuns: RUNS },
  );
  t.pass(`${RUNS} cookies`);
});

t.test('random queries of v2, v3, pages and links get no 500', async (t) => {
  const parameter = fc.constantFrom(
    'workspaceId',
    'limit',
    'cursor',
    'sortBy',
    'filter[name][contains]',
    'filter[status][in]',
    'lang',
    'skip',
    'startDate',
    'order',
    'error',
    'token',
    '__proto__',
    'x',
  );
  const value = fc.oneof(
    anyText({ maxLength: 30 }).map(encodeURIComponent),
    fc.constantFrom(
      '%',
      '%00',
      '1e9',
      '-1',
      '999999999999999999999',
      `${'a'.repeat(600)}`,
      "'",
      workspaceId,
      Buffer.from('["updatedAt","\\u0000","x"]').toString('base64url'),
    ),
  );
  const paths = [
    `/api/v3/surveys?workspaceId=${workspaceId}`,
    `/api/v3/surveys/${survey.id}?`,
    `/api/v3/action-classes?workspaceId=${workspaceId}`,
    '/api/v2/management/responses?',
    '/auth/login?',
    '/auth/verify?',
    '/verify-email-change?',
    '/api/auth/error?',
    '/api/v1/integrations?',
  ];
  await fc.assert(
    fc.asyncProperty(fc.constantFrom(...paths), parameter, value, async (path, name, text) => {
      const headers = path.includes('/v2/') ? { 'x-api-key': apiKey } : { cookie };
      const reply = await api.app.inject({ method: 'GET', url: `${path}&${name}=${text}`, headers });
      return isSound(reply.statusCode, reply.body);
    }),
    { numRuns: RUNS * 8 },
  );
  t.pass(`${RUNS * 8} queries`);
});
