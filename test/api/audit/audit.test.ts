/** The audit log records failed logins and deleted files. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { addSurvey, apiKey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const env = { AUDIT_LOG_ENABLED: '1' };
const entriesOf = (api: TestApi) =>
  api.context.db.selectFrom('auditEvents').selectAll().orderBy('timestamp').orderBy('id').execute();

t.test('writes one record for each failure: who, what, where from and why', async (t) => {
  const api = await startApi(t, { env });
  const owner = await api.context.db.selectFrom('users').select('id').executeTakeFirstOrThrow();
  const browser = openBrowser(api);
  const fields = { email: 'Owner@Example.com', password: 'Wrong1234' };
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  const form = new URLSearchParams({ ...fields, csrfToken, json: 'true' }).toString();
  await browser.call('POST', '/api/auth/callback/credentials', form, {
    'x-forwarded-for': '203.0.113.7',
    'x-request-id': 'request-1',
  });
  t.match(await entriesOf(api), [
    {
      timestamp: new Date(api.context.clock()).toISOString(),
      action: 'authenticationAttempted',
      actorId: owner.id,
      actorType: 'user',
      targetId: owner.id,
      targetType: 'user',
      status: 'failure',
      ipAddress: '203.0.113.7',
      eventId: 'request-1',
    },
  ]);
});

t.test('each failed login has its reason, and no secret', async (t) => {
  const api = await startApi(t, { env });
  const { db } = api.context;
  await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  await openBrowser(api).logIn('nobody@example.com', 'Wrong1234');
  await openBrowser(api).logIn('', '');
  await openBrowser(api).logIn('owner@example.com', 'x'.repeat(200));
  await openBrowser(api).form('/api/auth/callback/token', { token: 'made up' });
  await openBrowser(api).form('/api/auth/callback/token', {});
  await db.updateTable('users').set({ isActive: 0 }).execute();
  await openBrowser(api).logIn('owner@example.com', 'Password1');
  const entries = await entriesOf(api);
  const changes = entries.map((entry) => JSON.parse(entry.changes));
  t.strictSame(changes.map(({ failureReason }) => failureReason).sort(), [
    'account_inactive',
    'invalid_password',
    'invalid_token',
    'no_credentials_provided',
    'password_too_long',
    'token_not_provided',
    'user_not_found',
  ]);
  const unknown = entries.find((entry) => entry.changes.includes('user_not_found'));
  const hash = createHash('sha256').update('nobody@example.com').digest('hex').slice(0, 32);
  t.equal(unknown?.actorId, `email_${hash}`);
  t.notMatch(
    JSON.stringify(entries),
    /Wrong1234|example\.com|made up|xxxx|argon2/,
    'entries have no secret and no address',
  );
});

t.test('records three failures of an account in five minutes, then every tenth', async (t) => {
  const api = await startApi(t, { env });
  for (let i = 0; i < 25; i++) await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  await openBrowser(api).logIn('nobody@example.com', 'Wrong1234');
  const numbers = (await entriesOf(api)).map((entry) => JSON.parse(entry.changes).failuresInWindow);
  t.strictSame(
    numbers.sort((a, b) => a - b),
    [1, 1, 2, 3, 10, 20],
  );
  api.advance(5 * 60_000);
  await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  const [last] = (await entriesOf(api)).slice(-1);
  t.equal(JSON.parse(last?.changes ?? '').failuresInWindow, 1, 'a new window counts from one');
});

t.test('records every attempt to delete a file: who, which file, and the result', async (t) => {
  const api = await startApi(t, { env });
  const { db } = api.context;
  const key = await db.selectFrom('apiKeys').selectAll().executeTakeFirstOrThrow();
  const path = `/storage/${workspaceId}/public/a.png`;
  const attempt = async (file: string, headers: Record<string, string>): Promise<unknown> => {
    await api.client('DELETE', file, undefined, headers);
    const [{ changes, ...entry } = { changes: '{}' }] = await db
      .deleteFrom('auditEvents')
      .returningAll()
      .execute();
    return { ...entry, changes: JSON.parse(changes) };
  };
  const known = { action: 'deleted', actorId: key.id, actorType: 'api', targetType: 'file' };
  t.match(await attempt(path, { 'x-api-key': apiKey, 'x-forwarded-for': '203.0.113.7' }), {
    ...known,
    targetId: 'public/a.png',
    status: 'success',
    organizationId: key.organizationId,
    ipAddress: '203.0.113.7',
    changes: { workspaceId },
  });
  const reader = await api.addKey({ [workspaceId]: 'read' });
  t.match(await attempt(path, { 'x-api-key': reader }), {
    status: 'failure',
    changes: { workspaceId, failureReason: 'unauthorized' },
  });
  t.match(await attempt(`/storage/${workspaceId}/public/a%2f..%2fb.png`, { 'x-api-key': apiKey }), {
    ...known,
    targetId: 'public/a/../b.png',
    changes: { failureReason: 'bad_request' },
  });
  t.match(await attempt(`/storage/${workspaceId}/public/a%00.png`, { 'x-api-key': apiKey }), {
    status: 'failure',
    targetId: 'public/a\uFFFD.png',
    changes: { failureReason: 'bad_request' },
  });
  t.match(
    await attempt('/storage/nowhere/private/a.png', { 'x-api-key': apiKey, 'x-forwarded-for': '::1' }),
    {
      targetId: 'private/a.png',
      changes: { workspaceId: 'nowhere', failureReason: 'not_found' },
    },
  );
  const stranger = { 'x-api-key': 'fbk_made_up', 'x-forwarded-for': '203.0.113.8' };
  const refusals = [];
  for (let i = 0; i < 12; i += 1) {
    await api.client('DELETE', path, undefined, stranger);
    refusals.push(...(await db.deleteFrom('auditEvents').returningAll().execute()));
  }
  t.match(refusals[0], { actorId: 'unknown', status: 'failure' });
  t.match(
    refusals.map(({ changes }) => JSON.parse(changes)),
    [1, 2, 3, 10].map((failuresInWindow) => ({ failureReason: 'not_authenticated', failuresInWindow })),
    'only some failures without an account are recorded',
  );
  t.equal(refusals.length, 4);
  await api.client('GET', path, undefined, stranger);
  t.strictSame(await entriesOf(api), [], 'reading a file is not recorded as a deletion');
});

t.test('names the organization of a person who deletes a file, by either id of the workspace', async (t) => {
  const api = await startApi(t, { env });
  await api.addWorkspace('ws2');
  const { db } = api.context;
  const organizationId = await firstOrganization(api);
  const { browser, id } = await addPerson(api, 'Chief', 'manager');
  const organizationIn = async (scope: string) => {
    await db.deleteFrom('auditEvents').execute();
    await browser.call('DELETE', `/storage/${scope}/public/a.png`);
    return (await entriesOf(api)).map((entry) => entry.organizationId);
  };
  t.strictSame(await organizationIn('ws2'), [organizationId]);
  const at = { createdAt: '2026-01-01T00:00:00.000Z', updatedAt: '2026-01-01T00:00:00.000Z' };
  const other = { ...at, id: 'org2', name: 'Other', isOperators: 0 } as const;
  await db.insertInto('organizations').values(other).execute();
  const membership = { organizationId: 'org2', userId: id, role: 'owner', createdAt: at.createdAt } as const;
  await db.insertInto('memberships').values(membership).execute();
  t.strictSame(await organizationIn('ws2'), [organizationId], 'also if the person has several');
});

t.test('without AUDIT_LOG_ENABLED nothing is recorded', async (t) => {
  const api = await startApi(t);
  await addSurvey(api);
  await logInOwner(api);
  await openBrowser(api).logIn('owner@example.com', 'Wrong1234');
  await api.manage('DELETE', `/storage/${workspaceId}/public/a.png`);
  t.strictSame(await entriesOf(api), []);
});
