/** The audit log records logins, and what keys and people write. */
import { createHash } from 'node:crypto';
import t, { type Test } from 'tap';
import { addSurvey, apiKey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { firstOrganization } from '#test/support/people.ts';

const begin = (t: Test): Promise<TestApi> => startApi(t, { env: { AUDIT_LOG_ENABLED: '1' } });

/** Returns the entries since the last call, oldest first, and deletes them. */
async function entriesOf({ advance, context }: TestApi) {
  advance(1);
  const rows = await context.db.deleteFrom('auditEvents').returningAll().execute();
  return rows
    .toSorted((a, b) => a.timestamp.localeCompare(b.timestamp))
    .map(({ changes, ...row }) => ({ ...row, changes: JSON.parse(changes) }));
}

t.test('a failed login: who, where from and why, and no secret', async (t) => {
  const api = await begin(t);
  const owner = await api.context.db.selectFrom('users').select('id').executeTakeFirstOrThrow();
  const failures = async (...logins: readonly (readonly [string, string])[]) => {
    for (const [email, password] of logins) await openBrowser(api).logIn(email, password);
    return entriesOf(api);
  };
  const wrong = await failures(['Owner@Example.com', 'Wrong1234']);
  t.match(wrong, [
    {
      ...{ timestamp: /^2026-/, action: 'authenticationAttempted', actorId: owner.id, actorType: 'user' },
      ...{ status: 'failure', ipAddress: String, eventId: String },
      changes: { failureReason: 'invalid_password', provider: 'credentials', authMethod: 'password' },
    },
  ]);
  const unknown = await failures(['nobody@example.com', 'Wrong1234']);
  const hash = createHash('sha256').update('nobody@example.com').digest('hex').slice(0, 32);
  t.match(unknown, [{ actorId: `email_${hash}`, changes: { failureReason: 'user_not_found' } }]);
  const short = await failures(['', '']);
  t.match(short, [{ actorId: 'unknown', changes: { failureReason: 'no_credentials_provided' } }]);
  const long = await failures(['owner@example.com', 'x'.repeat(200)]);
  t.match(long, [{ changes: { failureReason: 'password_too_long' } }]);
  const secrets = /Wrong1234|example\.com|xxxx|argon2/;
  t.notMatch(JSON.stringify([wrong, unknown, short, long]), secrets);

  await openBrowser(api).form('/api/auth/callback/token', { token: 'made up' });
  await openBrowser(api).form('/api/auth/callback/token', {});
  const links = await entriesOf(api);
  t.strictSame(links.map(({ changes }) => changes.failureReason).sort(), [
    'invalid_token',
    'token_not_provided',
  ]);
  t.notMatch(JSON.stringify(links), /made up/);
});

t.test('three failures of an account in five minutes, then every tenth', async (t) => {
  const api = await begin(t);
  const numbers = async () => (await entriesOf(api)).map(({ changes }) => changes.failuresInWindow);
  for (let i = 0; i < 25; i++) await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  t.strictSame((await numbers()).sort(), [1, 10, 2, 20, 3]);
  await openBrowser(api).logIn('nobody@example.com', 'Wrong1234');
  t.strictSame(await numbers(), [1]);
  api.advance(5 * 60_000);
  await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  t.strictSame(await numbers(), [1], 'a new window counts from one');
});

t.test('what a key writes: who, the route, which row, from where, and how it ended', async (t) => {
  const api = await begin(t);
  const key = await api.context.db.selectFrom('apiKeys').selectAll().executeTakeFirstOrThrow();
  const survey = await addSurvey(api);
  const url = `/api/v1/management/surveys/${survey.id}`;
  const known = { actorId: key.id, actorType: 'api' };
  const done = { ...known, status: 'success', changes: { statusCode: 200 } };
  t.match(await entriesOf(api), [{ ...done, action: 'POST /api/v1/management/surveys', target: '' }]);
  const headers = { 'x-api-key': apiKey, 'x-forwarded-for': '203.0.113.7', 'x-request-id': 'request-1' };
  await api.client('PUT', url, { name: 'Renamed' }, headers);
  const action = 'PUT /api/v1/management/surveys/:surveyId';
  const from = { ipAddress: '203.0.113.7', eventId: 'request-1' };
  t.match(await entriesOf(api), [{ ...done, ...from, action, target: survey.id }]);
  await api.manage('GET', url);
  t.same(await entriesOf(api), [], 'reading is not recorded');
  const file = 'public/a--fid--1.png';
  await api.manage('DELETE', `/storage/${workspaceId}/${file}`);
  t.match(await entriesOf(api), [{ ...done, target: `${workspaceId}/${file}` }]);

  const refusal = (statusCode: number) => ({ ...known, status: 'failure', changes: { statusCode } });
  await api.manage('DELETE', '/api/v1/management/surveys/ada@example.com');
  await api.manage('DELETE', '/api/v1/management/surveys/none');
  const missing = await entriesOf(api);
  t.match(missing, [
    { ...refusal(404), target: '' },
    { ...refusal(404), target: 'none' },
  ]);
  t.notMatch(JSON.stringify(missing), /ada@example/);
  for (let i = 0; i < 30; i += 1) await api.manage('POST', '/api/v1/management/surveys', '{');
  t.equal((await entriesOf(api)).length, 4, 'only a few of many: the 3rd, 10th, 20th and 30th');
  await api.client('POST', '/api/v1/management/surveys', {}, { 'x-api-key': 'fbk_invented' });
  t.same(await entriesOf(api), [], 'an unknown key is not recorded');
});

t.test('what a person does: the login, and the forms of the account page', async (t) => {
  const api = await begin(t);
  const owner = await logInOwner(api);
  const [login] = await entriesOf(api);
  t.match(login, { action: 'authenticationSucceeded', actorType: 'user', status: 'success' });
  const known = { actorId: login?.actorId, actorType: 'user', status: 'success' };
  const reach = await firstOrganization(api);
  await owner.form('/account/api-keys', { label: 'On the page', reach, permission: 'read' });
  t.match(await entriesOf(api), [{ ...known, action: 'POST /account/api-keys' }]);
  const keys = await api.context.db.selectFrom('apiKeys').select(['id', 'label']).execute();
  const id = keys.find(({ label }) => label === 'On the page')?.id ?? '';
  await owner.form(`/account/api-keys/${id}/revoke`, {});
  t.match(await entriesOf(api), [{ ...known, action: 'POST /account/api-keys/:id/revoke', target: id }]);
});

t.test('without AUDIT_LOG_ENABLED nothing is recorded', async (t) => {
  const api = await startApi(t);
  await addSurvey(api);
  await logInOwner(api);
  await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  t.strictSame(await entriesOf(api), []);
});
