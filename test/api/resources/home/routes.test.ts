/** The account page. The start page and error pages are in test/conversations/accounts.md. */
import t from 'tap';
import { apiKey, startApi, workspaceId } from '#test/support/api-app.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { firstOrganization } from '#test/support/people.ts';

const api = await startApi(t);
const html = { accept: 'text/html', 'sec-fetch-site': 'same-origin' };
const open = (browser: Browser, path: string) => browser.call('GET', path, undefined, html);

async function send(browser: Browser, path: string, fields: Record<string, string>) {
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  return browser.call('POST', path, new URLSearchParams({ csrfToken, ...fields }).toString(), html);
}

t.test('503 if the database does not answer, as HTML and as JSON', async (t) => {
  const away = await startApi(t);
  await away.context.db.destroy();
  const page = await away.client('GET', '/', undefined, html);
  t.equal(page.status, 503);
  t.match(page.text, 'This service is not ready');
  t.equal((await away.client('GET', '/')).json.code, 'service_unavailable');
});

t.test('the account page: its data, and a key that is created, used, shown once and revoked', async (t) => {
  const browser = await logInOwner(api);
  const page = await open(browser, '/account');
  t.equal(page.status, 200);
  for (const text of ['Owner', 'owner@example.com', 'My workspace', workspaceId, 'First key'])
    t.match(page.text, text);
  t.notMatch(page.text, apiKey);

  const made = await send(browser, '/account/api-keys', {
    label: 'n8n <1>',
    reach: new RegExp(`value="(\\w+:${workspaceId})"`).exec(page.text)?.[1] ?? '',
    permission: 'read',
  });
  t.equal(made.status, 200);
  t.match(made.headers['cache-control'], 'no-store');
  t.match(made.text, 'n8n &#60;1&#62;');
  const key = /<pre><code>(fbk_[\w-]{43})<\/code>/.exec(made.text)?.[1] ?? '';
  t.match((await api.client('GET', '/api/v1/management/me', undefined, { 'x-api-key': key })).json, {
    workspace: { id: workspaceId },
  });
  const write = await api.client(
    'POST',
    '/api/v1/management/action-classes',
    { workspaceId },
    { 'x-api-key': key },
  );
  t.equal(write.status, 401, 'the new key may only read');
  const after = await open(browser, '/account');
  t.notMatch(after.text, key, 'the key is shown once');
  const path =
    /action="(\/account\/api-keys\/\w+\/revoke)">[\s\S]{0,200}Revoke n8n/.exec(after.text)?.[1] ?? '';
  const revoked = await send(browser, path, {});
  t.match(revoked, { status: 303, headers: { location: '/account?notice=revoked' } });
  t.equal((await api.client('GET', '/api/v1/management/me', undefined, { 'x-api-key': key })).status, 401);
  const again = await send(browser, path, {});
  t.equal(again.status, 404, 'revoking again changes nothing');
  t.match(again.text, /role="alert">API Key not found/);
});

t.test('two workspaces with one name can be told apart wherever they are named', async (t) => {
  const fresh = await startApi(t);
  const { db } = fresh.context;
  await fresh.addWorkspace('second');
  await fresh.addWorkspace('third');
  await db.updateTable('workspaces').set({ name: 'My workspace' }).where('id', '=', 'second').execute();
  await db.updateTable('workspaces').set({ name: 'Third' }).where('id', '=', 'third').execute();
  const browser = await logInOwner(fresh);
  const { text } = await open(browser, '/account');
  const options = [...text.matchAll(/<option value="\w+:\w+">([^<]*)/g)].map(([, label]) => label);
  t.strictSame(options.sort(), [
    'Only My workspace (second)',
    `Only My workspace (${workspaceId})`,
    'Only Third',
  ]);
});

t.test('a key that cannot be created: the mistake at its field', async (t) => {
  const browser = await logInOwner(api);
  const reach = await firstOrganization(api);
  const make = (fields: Record<string, string>) =>
    send(browser, '/account/api-keys', { label: 'x', reach, permission: 'read', ...fields });
  for (const [label, problem] of [
    [' ', 'must have more than spaces'],
    ['x'.repeat(256), 'must have at most 255'],
  ] as const) {
    const reply = await make({ label });
    t.equal(reply.status, 400);
    t.match(reply.text, `id="label-error">Name of the key ${problem}`);
  }
  t.equal((await make({ reach: 'other' })).status, 401);
  t.equal((await make({ permission: 'own' })).status, 401);
  t.equal((await make({ reach: `${reach}:other` })).status, 400);
});

t.test('changes nothing without a session or a CSRF token', async (t) => {
  const stranger = openBrowser(api);
  const asked = { status: 303, headers: { location: '/auth/login?notice=log-in' } };
  t.match(await open(stranger, '/account'), asked);
  t.match(await send(stranger, '/account/api-keys', { label: 'x' }), asked);
  const browser = await logInOwner(api);
  const form = new URLSearchParams({
    label: 'stolen',
    reach: await firstOrganization(api),
    permission: 'manage',
  });
  t.equal((await browser.call('POST', '/account/api-keys', form.toString(), html)).status, 403);
  const { id } = await api.context.db
    .selectFrom('apiKeys')
    .select('id')
    .where('label', '=', 'First key')
    .executeTakeFirstOrThrow();
  t.equal((await browser.call('POST', `/account/api-keys/${id}/revoke`, '', html)).status, 403);
  t.notMatch((await open(browser, '/account')).text, 'stolen');
});

t.test('a member sees workspaces and no keys', async (t) => {
  const fresh = await startApi(t);
  const browser = await logInOwner(fresh);
  await fresh.context.db.updateTable('memberships').set({ role: 'member' }).execute();
  const page = await open(browser, '/account');
  t.equal(page.status, 200);
  t.notMatch(page.text, 'First key');
  t.match(page.text, 'Owners and managers');
});
