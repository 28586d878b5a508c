/** A person deletes the account, together with the organizations that belong to that person alone. */
import { pino } from 'pino';
import t from 'tap';
import { bootstrap } from '#api/bootstrap.ts';
import { deleteMarked } from '#api/resources/organizations/deletion.ts';
import { addSurvey, apiKey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { apiCommand } from '#test/support/cli.ts';
import { sharedDatabase } from '#test/support/database.ts';
import { countTables } from '#test/support/full-workspace.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { lastMail } from '#test/support/mails.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const html = { accept: 'text/html', 'sec-fetch-site': 'same-origin' };
const path = '/account/delete';
const password = 'Password1';
const log = pino({ level: 'silent' });

async function send(browser: Browser, fields: Record<string, string>) {
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  return browser.call('POST', path, new URLSearchParams({ csrfToken, ...fields }).toString(), html);
}

/** Signs a person up, with an organization of their own. */
async function signUp(api: TestApi, email: string): Promise<Browser> {
  const browser = openBrowser(api);
  await browser.call('POST', '/api/auth/signup', { name: 'Ada', email, password });
  const { token } = await lastMail(api, 'verifyEmail');
  await browser.form('/api/auth/callback/token', { token, password });
  return browser;
}

const isIn = (reply: { readonly json: { readonly url: string } }): boolean =>
  !reply.json.url.includes('error=');

t.test('303: the account with its organization, which is gone for everybody at once', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const before = await countTables(db);
  const ada = await signUp(api, 'ada@example.com');
  const other = openBrowser(api);
  await other.logIn('ada@example.com', password);
  const { apiKey: key } = (await ada.call('POST', '/api/v1/api-keys', { label: 'all' })).json.data;
  const [workspace] = (await ada.call('GET', '/api/v1/management/workspaces')).json.data;
  const asKey = { 'x-api-key': key };
  const survey = await api.client(
    'POST',
    '/api/v1/management/surveys',
    { workspaceId: workspace.id, name: 's', type: 'link', status: 'inProgress', questions: [] },
    asKey,
  );
  t.ok(survey.status === 200 || survey.status === 400, survey.text);
  await api.client('POST', '/api/auth/forgot-password', { email: 'ada@example.com' });
  const reset = await lastMail(api, 'resetPassword');

  t.match((await ada.call('GET', '/account', undefined, html)).text, `href="${path}"`);
  const page = await ada.call('GET', path, undefined, html);
  t.equal(page.status, 200);
  for (const text of ['Organization of Ada', 'My workspace', 'class="danger"']) t.match(page.text, text);
  const wrong = await send(ada, { email: 'owner@example.com' });
  t.equal(wrong.status, 400);
  t.match(wrong.text, /id="email-error"/);
  t.equal((await other.call('GET', '/account', undefined, html)).status, 200, 'nothing is deleted');

  const done = await send(ada, { email: ' ADA@example.com ' });
  t.match(done, { status: 303, headers: { location: '/auth/login?notice=account-deleted' } });
  t.match((await ada.call('GET', '/auth/login?notice=account-deleted', undefined, html)).text, 'is deleted');
  t.notOk(
    [...ada.cookies.keys()].some((name) => name.includes('session')),
    'the cookie goes',
  );
  t.equal((await other.call('GET', '/account', undefined, html)).status, 302, 'other sessions end');
  t.equal((await api.client('GET', '/api/v1/management/workspaces', undefined, asKey)).status, 401);
  t.equal((await api.client('GET', `/api/v1/client/${workspace.id}/environment`)).status, 404);
  t.notOk(isIn(await openBrowser(api).logIn('ada@example.com', password)));
  const used = await api.client('POST', '/api/auth/reset-password', {
    token: reset.token,
    password: 'Password2',
  });
  t.not(used.status, 200, 'links end');
  const mails = await db
    .selectFrom('mailOutbox')
    .select('id')
    .where('recipient', '=', 'ada@example.com')
    .execute();
  t.strictSame(mails, [], 'no mail waits for the person');

  await deleteMarked(api.context, () => false, log);
  t.strictSame(await countTables(db), before, 'no row is left');
  await signUp(api, 'ada@example.com');
  t.ok(isIn(await openBrowser(api).logIn('ada@example.com', password)), 'the address is free again');
});

t.test('a session that ended, and a second request', async (t) => {
  const api = await startApi(t);
  const ada = await signUp(api, 'ada@example.com');
  const cookies = new Map(ada.cookies);
  const stranger = openBrowser(api);
  t.equal((await stranger.call('GET', path, undefined, html)).status, 302);
  t.equal((await send(stranger, { email: 'ada@example.com' })).status, 401);
  const token = new URLSearchParams({ email: 'ada@example.com' });
  t.equal((await ada.call('POST', path, token.toString(), html)).status, 403, 'without the CSRF token');
  t.equal((await send(ada, { email: 'ada@example.com' })).status, 303);
  for (const [name, value] of cookies) ada.cookies.set(name, value);
  t.equal((await send(ada, { email: 'ada@example.com' })).status, 401);
});

t.test('an account without an organization', async (t) => {
  const api = await startApi(t);
  const { email, browser } = await addPerson(api, 'Sam', null);
  t.equal((await send(browser, { email })).status, 303);
  t.notOk(isIn(await openBrowser(api).logIn(email, password)));
  t.equal((await api.manage('GET', '/api/v1/management/me')).status, 200);
});

t.test('409: an organization with other people, of an owner and of a manager', async (t) => {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url } });
  const { db } = api.context;
  const mia = await addPerson(api, 'Mia', 'manager');
  const owner = await logInOwner(api);
  const before = await countTables(db);
  for (const [browser, email] of [
    [owner, 'owner@example.com'],
    [mia.browser, mia.email],
  ] as const) {
    const page = await browser.call('GET', path, undefined, html);
    t.match(page.text, 'npm run people -- remove');
    t.notMatch(page.text, `action="${path}"`, 'no button that cannot work');
    const reply = await send(browser, { email });
    t.equal(reply.status, 409);
    t.match(reply.text, /My organization.*npm run people -- remove/);
  }
  const { sessions, ...rest } = await countTables(db);
  t.strictSame({ sessions: before.sessions, ...rest }, { ...before }, 'nothing is deleted');
  t.ok(sessions);

  const removed = await apiCommand(['people', 'remove', mia.email], { env: { DATABASE_URL: url } });
  t.equal(removed.code, 0, removed.stderr);
  const again = openBrowser(api);
  await again.logIn(mia.email, password);
  t.equal((await send(again, { email: mia.email })).status, 303, 'the advice works for the manager');
  t.equal((await send(owner, { email: 'owner@example.com' })).status, 303, 'and for the owner');
});

t.test('the last person of the first organization: the server stays set up, and closed', async (t) => {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url, SIGNUP_ENABLED: '0' }, clock: Date.now });
  const { db } = api.context;
  const first = await firstOrganization(api);
  await addSurvey(api);
  const owner = await logInOwner(api);
  t.equal((await send(owner, { email: 'owner@example.com' })).status, 303);
  await deleteMarked(api.context, () => false, log);
  const left = Object.entries(await countTables(db)).filter(([, count]) => count > 0);
  t.strictSame(Object.fromEntries(left), { organizations: 1 });

  const signUp = { name: 'Eve', email: 'eve@example.com', password };
  t.equal((await api.client('POST', '/api/auth/signup', signUp)).status, 403, 'sign-up stays closed');
  const again = await bootstrap(api.context, { bootstrapApiKey: apiKey, bootstrapPassword: password });
  t.equal(again, null, 'the next start is not the first one');
  t.equal((await api.client('GET', `/api/v1/client/${workspaceId}/environment`)).status, 404);

  const env = { DATABASE_URL: url, PUBLIC_URL: 'https://feedback.example.com' };
  const added = await apiCommand(['people', 'add', 'ben@example.com', '--owner', '--json'], { env });
  t.equal(added.code, 0, added.stderr);
  const { link, organizationId } = JSON.parse(added.stdout);
  t.equal(organizationId, first);
  const ben = openBrowser(api);
  const token = new URL(link).searchParams.get('token') ?? '';
  t.ok(isIn(await ben.form('/api/auth/callback/token', { token, password: 'Password2', name: 'Ben' })));
  const made = await ben.call('POST', `/api/v1/organizations/${first}/workspaces`, { name: 'New' });
  t.equal(made.status, 200);
});

t.test('an organization that is being deleted takes no people', async (t) => {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url } });
  const ada = await signUp(api, 'ada@example.com');
  const [{ organizationId }] = (await ada.call('GET', '/api/v1/management/workspaces')).json.data;
  const people = () =>
    apiCommand(['people', 'add', 'ben@example.com', '--organization', organizationId], {
      env: { DATABASE_URL: url, PUBLIC_URL: 'https://feedback.example.com' },
    });
  t.equal((await send(ada, { email: 'ada@example.com' })).status, 303);
  const { code, stderr } = await people();
  t.equal(code, 1);
  t.match(stderr, 'There is no organization');
});
