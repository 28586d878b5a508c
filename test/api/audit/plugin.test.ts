/** The audit log records what keys and people write, and changes of accounts. */
import t, { type Test } from 'tap';
import { writtenBy } from '#api/audit/write.ts';
import { addSurvey, apiKey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { lastMail } from '#test/support/mails.ts';
import { firstOrganization } from '#test/support/people.ts';

async function begin(t: Test): Promise<TestApi> {
  return startApi(t, { env: { AUDIT_LOG_ENABLED: '1' } });
}

/** Returns the entries since the last call, oldest first, and deletes them. */
async function entriesOf(api: TestApi) {
  api.advance(1);
  const rows = await api.context.db.deleteFrom('auditEvents').returningAll().execute();
  return rows
    .toSorted((a, b) => a.timestamp.localeCompare(b.timestamp))
    .map(({ changes, ...row }) => ({ ...row, changes: JSON.parse(changes) }));
}

const cases: readonly (readonly [string, string, string | null, string?])[] = [
  ['POST', '/api/v1/management/surveys', 'created survey'],
  ['PUT', '/api/v1/management/surveys/:surveyId', 'updated survey surveyId'],
  ['DELETE', '/api/v1/surveys/:surveyId', 'deleted survey surveyId'],
  ['POST', '/api/v1/management/responses', 'created response'],
  ['DELETE', '/api/v1/management/people/:personId', 'deleted contact personId'],
  ['PUT', '/api/v2/management/webhooks/:webhookId', 'updated webhook webhookId'],
  ['POST', '/api/v1/management/action-classes', 'created actionClass'],
  [
    'PUT',
    '/api/v1/management/contact-attribute-keys/:contactAttributeKeyId',
    'updated contactAttributeKey contactAttributeKeyId',
  ],
  ['POST', '/api/v1/management/attribute-classes', 'created contactAttributeKey'],
  ['POST', '/api/v1/management/storage', 'created file'],
  ['POST', '/api/v1/api-keys', 'created apiKey'],
  ['POST', '/api/v1/organizations/:organizationId/workspaces', 'created workspace'],
  ['POST', '/api/v1/management/surveys/:surveyId/link-emails', 'created surveyLink surveyId'],
  ['POST', '/api/v1/license/recheck', null],
  ['GET', '/api/v1/management/surveys', null],
];
t.test('turns methods and routes into the terms of the log', async (t) => {
  for (const [method, route, expected] of cases) {
    const written = writtenBy(method, route);
    const text =
      written === null
        ? null
        : [written.action, written.targetType, written.param].filter((part) => part !== null).join(' ');
    t.equal(text, expected, `${method} ${route}`);
  }
});

t.test('records changes made with a key: who, what, which row, from where', async (t) => {
  const api = await begin(t);
  const key = await api.context.db.selectFrom('apiKeys').selectAll().executeTakeFirstOrThrow();
  const survey = await addSurvey(api);
  const url = `/api/v1/management/surveys/${survey.id}`;
  const known = {
    actorId: key.id,
    actorType: 'api',
    targetId: survey.id,
    targetType: 'survey',
    status: 'success',
    organizationId: key.organizationId,
  };
  t.match(await entriesOf(api), [{ ...known, action: 'created', changes: { workspaceId } }]);
  const headers = { 'x-api-key': apiKey, 'x-forwarded-for': '203.0.113.7', 'x-request-id': 'request-1' };
  await api.client('PUT', url, { name: 'Renamed', 'ada@example.com': 'x' }, headers);
  t.match(await entriesOf(api), [
    {
      ...known,
      action: 'updated',
      timestamp: /^2026-/,
      ipAddress: '203.0.113.7',
      eventId: 'request-1',
      changes: { route: 'PUT /api/v1/management/surveys/:surveyId', fields: ['name'] },
    },
  ]);
  await api.manage('GET', url);
  t.same(await entriesOf(api), [], 'reading is not recorded');
  await api.manage('DELETE', url);
  t.match(await entriesOf(api), [{ ...known, action: 'deleted' }]);
});

t.test('records a refusal as a failure with its reason, and only a few of many', async (t) => {
  const api = await begin(t);
  const reader = { 'x-api-key': await api.addKey({ [workspaceId]: 'read' }) };
  const create = (body: object) => api.client('POST', '/api/v1/management/action-classes', body, reader);
  await create({ workspaceId, name: 'A', type: 'code', key: 'a' });
  t.match(await entriesOf(api), [
    {
      action: 'created',
      targetType: 'actionClass',
      targetId: 'unknown',
      status: 'failure',
      changes: { failureReason: 'unauthorized', failuresInWindow: 1, workspaceId },
    },
  ]);
  await api.manage('DELETE', '/api/v1/management/surveys/ada@example.com');
  await api.manage('PUT', '/api/v1/management/surveys/none', { workspaceId: 'x'.repeat(100_000) });
  const missing = await entriesOf(api);
  t.match(missing, [
    { targetId: 'unknown', changes: { failureReason: 'not_found' } },
    { targetId: 'none', changes: { failureReason: 'not_found' } },
  ]);
  t.notMatch(JSON.stringify(missing), /ada@example|xxx/);
  for (let i = 0; i < 30; i += 1) await create({ workspaceId });
  t.equal((await entriesOf(api)).length, 5, 'records the 2nd, 3rd, 10th, 20th and 30th change');
  await api.client('POST', '/api/v1/management/surveys', {}, { 'x-api-key': 'fbk_invented' });
  t.same(await entriesOf(api), [], 'an unknown key is not recorded');
});

t.test('records what a person does with keys', async (t) => {
  const api = await begin(t);
  const organizationId = await firstOrganization(api);
  const owner = await logInOwner(api);
  const { id: ownerId } = (await owner.call('GET', '/api/v1/me')).json;
  await entriesOf(api);
  const known = { actorId: ownerId, actorType: 'user', organizationId, status: 'success' };

  const { id: keyId, apiKey: made } = (await owner.call('POST', '/api/v1/api-keys', { label: 'K' })).json
    .data;
  await owner.call('DELETE', `/api/v1/api-keys/${keyId}`);
  const keys = await entriesOf(api);
  t.match(
    keys,
    ['created', 'deleted'].map((action) => ({
      ...known,
      action,
      targetType: 'apiKey',
      targetId: keyId,
    })),
  );
  t.notMatch(JSON.stringify(keys), made);

  const reach = organizationId;
  await owner.form('/account/api-keys', { label: 'On the page', reach, permission: 'read' });
  const [onPage] = await entriesOf(api);
  t.match(onPage, { ...known, action: 'created', targetType: 'apiKey' });
  await owner.form(`/account/api-keys/${onPage?.targetId}/revoke`, {});
  t.match(await entriesOf(api), [{ ...known, action: 'deleted', targetId: onPage?.targetId }]);
});

t.test('records what happens to an account, from sign-up on', async (t) => {
  const api = await begin(t);
  const actionsOf = async () =>
    (await entriesOf(api)).map(({ action, actorId, targetId, status }) => {
      t.equal(status, 'success');
      t.equal(actorId, targetId);
      return action;
    });
  const me = { name: 'Zoe', email: 'zoe@example.com', password: 'Password1' };
  await api.client('POST', '/api/auth/signup', me);
  t.same(await actionsOf(), ['created']);
  await openBrowser(api).logIn(me.email, me.password);
  t.same(await actionsOf(), ['passwordVerified'], 'no login is recorded before the address is verified');
  const verification = { token: (await lastMail(api, 'verifyEmail')).token, password: me.password };
  await openBrowser(api).form('/api/auth/callback/token', verification);
  t.same((await actionsOf()).sort(), ['authenticationSucceeded', 'emailVerified']);
  const browser = openBrowser(api);
  await browser.logIn(me.email, me.password);
  t.same(await actionsOf(), ['authenticationSucceeded']);
  await browser.form('/api/auth/signout', {});
  t.same(await actionsOf(), ['userSignedOut']);
  await api.client('POST', '/api/auth/forgot-password', { email: me.email });
  const { token } = await lastMail(api, 'resetPassword');
  await api.client('POST', '/api/auth/reset-password', { token, password: 'Password2' });
  t.same(await actionsOf(), ['updated']);
  const again = openBrowser(api);
  await again.logIn(me.email, 'Password2');
  await again.call('PUT', '/api/v1/profile/email', { email: 'new@example.com', password: 'Password2' });
  const change = await lastMail(api, 'changeEmail');
  await api.client('POST', '/verify-email-change', { token: change.token });
  t.same(await actionsOf(), ['authenticationSucceeded', 'updated', 'updated']);
});

t.test('refused changes of an account are recorded: by session, by form, and by link', async (t) => {
  const api = await begin(t);
  const { db } = api.context;
  const { id } = await db.selectFrom('users').select('id').executeTakeFirstOrThrow();
  const browser = await logInOwner(api);
  await entriesOf(api);
  const failures = async () =>
    (await entriesOf(api)).map(({ action, actorId, targetType, status, changes }) => [
      ...[action, actorId, targetType, status, changes.failureReason],
    ]);

  await browser.call('PUT', '/api/v1/profile/email', { email: 'new@example.com', password: 'Wrong1234' });
  t.strictSame(await failures(), [['updated', id, 'user', 'failure', 'bad_request']]);
  api.advance(300_000);

  const sent = async (path: string, fields: Record<string, string>): Promise<number> => {
    const { text } = await browser.call('GET', '/account');
    const csrfToken = /name="csrfToken" value="([^"]+)"/.exec(text)?.[1] ?? '';
    const body = String(new URLSearchParams({ csrfToken, ...fields }));
    return (await browser.call('POST', path, body)).status;
  };
  const reach = await firstOrganization(api);
  t.equal(await sent('/account/api-keys', { label: ' ', permission: 'read', reach }), 400);
  t.strictSame(await failures(), [['created', id, 'apiKey', 'failure', 'bad_request']]);

  const reset = { token: 'invented', password: 'Password2' };
  t.equal((await api.client('POST', '/api/auth/reset-password', reset)).status, 400);
  t.equal((await api.client('POST', '/verify-email-change', 'token=invented')).status, 400);
  t.strictSame(await failures(), [
    ['updated', 'unknown', 'user', 'failure', 'invalid_token'],
    ['updated', 'unknown', 'user', 'failure', 'invalid_token'],
  ]);
});
