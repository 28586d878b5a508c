/** A new person, somebody with an account, or several people at once accept an invite. */
import t, { type Test } from 'tap';
import { publicUrl, type Reply, startApi, type TestApi } from '#test/support/api-app.ts';
import { type Browser, logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const url = '/api/auth/accept-invite';
const ada = { name: 'Ada Lovelace', password: 'Password1' };
const html = { accept: 'text/html,*/*;q=0.8', 'content-type': 'application/x-www-form-urlencoded' };

interface World {
  readonly api: TestApi;
  readonly members: string;
  readonly owner: Browser;
  /** @returns the token of the link */
  invite(email: string, role?: string): Promise<string>;
}

async function begin(t: Test, env: Record<string, string> = {}): Promise<World> {
  const api = await startApi(t, { env: { SIGNUP_ENABLED: '0', ...env } });
  const organization = `/api/v1/organizations/${await firstOrganization(api)}`;
  // Those who join do so after the owner.
  api.advance(1);
  const owner = await logInOwner(api);
  return {
    api,
    members: `${organization}/members`,
    owner,
    async invite(email, role = 'member') {
      const reply = await owner.call('POST', `${organization}/invites`, { email, role });
      return String(reply.json.data.link).split('token=')[1] ?? '';
    },
  };
}

/** Sends the form of the page, as a browser does. */
async function send(browser: Browser, fields: Readonly<Record<string, string>>): Promise<Reply> {
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  return browser.call('POST', url, new URLSearchParams({ csrfToken, ...fields }).toString(), html);
}

t.test('a new person: one form creates the account and logs in, even if sign-up is closed', async (t) => {
  const { api, members, owner, invite } = await begin(t);
  const token = await invite('ada@example.com', 'manager');
  const browser = openBrowser(api);
  const page = await browser.call('GET', `/invite?token=${token}`);
  t.equal(page.status, 200);
  t.match(page.headers, { 'content-type': /text\/html/, 'referrer-policy': 'no-referrer' });
  t.match(page.text, 'Owner invites ada@example.com to My organization, as manager.');
  t.match(page.text, /<form method="post" action="\/api\/auth\/accept-invite">/);
  t.match(page.text, /name="name"[^>]*required/);
  t.match(page.text, /name="password" type="password" autocomplete="new-password"/);

  const sent = await send(browser, { token, ...ada });
  t.equal(sent.status, 302);
  t.equal(sent.headers.location, '/account', 'leads to the host of the page');
  t.match((await browser.call('GET', '/api/v1/me')).json, {
    email: 'ada@example.com',
    name: ada.name,
    emailVerified: String,
  });
  t.equal((await browser.call('GET', '/api/v1/api-keys')).status, 200, 'the person is a manager');
  t.match((await owner.call('GET', members)).json.data, [{ role: 'owner' }, { role: 'manager' }]);
  t.strictSame((await openBrowser(api).logIn('ada@example.com', ada.password)).json, { url: publicUrl });
  t.match((await send(openBrowser(api), { token, ...ada })).status, 400, 'a link works once');
  t.equal((await browser.call('GET', `/invite?token=${token}`)).status, 400);
});

t.test('programs that send JSON or json=true get JSON', async (t) => {
  const { api, invite } = await begin(t);
  const browser = openBrowser(api);
  const { csrfToken } = (await browser.call('GET', '/api/auth/csrf')).json;
  const token = await invite('ada@example.com');
  const weak = await browser.call('POST', url, { csrfToken, token, ...ada, password: 'weak' });
  t.equal(weak.status, 400);
  t.match(weak.json, { code: 'bad_request', details: { password: /8 to 128/ } });
  const made = await browser.call('POST', url, { csrfToken, token, ...ada, json: true });
  t.equal(made.status, 200);
  t.strictSame(made.json, { url: publicUrl });
  const other = await invite('ben@example.com');
  const foreign = await openBrowser(api).form(url, {
    token: other,
    ...ada,
    callbackUrl: 'https://evil.example/',
  });
  t.strictSame(foreign.json, { url: publicUrl }, 'does not lead to another site');
});

t.test('400: mistakes appear next to their fields, and the link stays valid', async (t) => {
  const { api, invite } = await begin(t);
  const token = await invite('ada@example.com');
  for (const [fields, text] of [
    [{ ...ada, password: 'weak' }, /id="password-error">A password has 8 to 128 characters/],
    [{ ...ada, name: '<b>' }, /id="name-error">Your name must have 1 to 250 letters/],
    [{ name: 'Ada', password: '' }, /name="name"[^>]*value="Ada"/],
  ] as const) {
    const reply = await send(openBrowser(api), { token, ...fields });
    t.equal(reply.status, 400);
    t.match(reply.headers['content-type'], 'text/html');
    t.match(reply.text, /role="alert"/);
    t.match(reply.text, text);
    t.notMatch(reply.text, '<b>');
  }
  t.equal((await send(openBrowser(api), { token, ...ada })).status, 302);
});

t.test('400: a form of another origin', async (t) => {
  const { api, invite } = await begin(t);
  const token = await invite('ada@example.com');
  const reply = await api.client('POST', url, { token, ...ada });
  t.equal(reply.status, 400);
  t.match(reply.json, { details: { csrfToken: String } });
  const neighbour = openBrowser(api);
  const { csrfToken } = (await neighbour.call('GET', '/api/auth/csrf')).json;
  const fields = { csrfToken, token, ...ada };
  const crossed = await neighbour.call('POST', url, fields, { 'sec-fetch-site': 'same-site' });
  t.equal(crossed.status, 400);
});

t.test('a person with an account must log in and accept; the link alone is not enough', async (t) => {
  const { api, members, owner, invite } = await begin(t);
  const person = await addPerson(api, 'Ada', null);
  const token = await invite(person.email);
  const stranger = openBrowser(api);
  const refused = await stranger.form(url, { token, ...ada });
  t.equal(refused.status, 401);
  t.match(refused.json, { code: 'not_authenticated', message: /log in with it first/ });

  const page = await stranger.call('GET', `/invite?token=${token}`);
  t.match(page.text, /This address has an account\. Log in with it to accept/);
  t.notMatch(page.text, /name="name"/);
  const form = new URLSearchParams({
    csrfToken: /name="csrfToken" value="(\w+)"/.exec(page.text)?.[1] ?? '',
    email: person.email,
    password: 'Password1',
    callbackUrl: /name="callbackUrl" value="([^"]+)"/.exec(page.text)?.[1] ?? '',
  });
  const login = await stranger.call('POST', '/api/auth/callback/credentials', form.toString(), html);
  t.equal(login.headers.location, `/invite?token=${token}`);
  const back = await stranger.call('GET', `/invite?token=${token}`);
  t.match(back.text, 'Accept the invitation');
  t.notMatch(back.text, /name="password"/);
  t.equal((await send(stranger, { token })).status, 302);
  t.match((await owner.call('GET', members)).json.data, [{}, { id: person.id, role: 'member' }]);
  t.strictSame((await openBrowser(api).logIn(person.email, 'Password1')).json, { url: publicUrl });
});

t.test('the session of another person cannot accept', async (t) => {
  const { api, members, owner, invite } = await begin(t);
  const person = await addPerson(api, 'Ada', null);
  const other = await addPerson(api, 'Other', null);
  const token = await invite(person.email);
  t.match(
    (await other.browser.call('GET', `/invite?token=${token}`)).text,
    /You are logged in as other@example/,
  );
  t.equal((await other.browser.form(url, { token })).status, 401);
  t.equal((await owner.call('GET', members)).json.data.length, 1);
});

t.test('the password of an unverified account does not survive the invite', async (t) => {
  const { api, invite } = await begin(t, { SIGNUP_ENABLED: '1' });
  const stranger = { name: 'Stranger', email: 'ada@example.com', password: 'Strangers1' };
  await api.client('POST', '/api/auth/signup', stranger);
  const { body } = await api.context.db.selectFrom('mailOutbox').select('body').executeTakeFirstOrThrow();
  const token = await invite('ada@example.com');
  t.equal((await send(openBrowser(api), { token, ...ada })).status, 302);
  t.match((await openBrowser(api).logIn('ada@example.com', 'Strangers1')).json.url, /Invalid%20credentials/);
  t.strictSame((await openBrowser(api).logIn('ada@example.com', ada.password)).json, { url: publicUrl });
  const old = /token=([\w-]+)/.exec(body)?.[1] ?? '';
  t.match((await openBrowser(api).form('/api/auth/callback/token', { token: old })).json.url, /error=/);
  const organizations = await api.context.db.selectFrom('organizations').select('id').execute();
  t.equal(organizations.length, 1);
});

t.test('of several concurrent calls one accepts', async (t) => {
  const { api, members, owner, invite } = await begin(t);
  const token = await invite('ada@example.com');
  const replies = await Promise.all([1, 2, 3].map(() => openBrowser(api).form(url, { token, ...ada })));
  t.strictSame(replies.map(({ status }) => status).sort(), [200, 400, 400]);
  t.equal((await owner.call('GET', members)).json.data.length, 2);
  const users = await api.context.db.selectFrom('users').select('id').execute();
  t.equal(users.length, 2);
});

t.test('400: a revoked, expired or invented invite, or one whose sender was removed', async (t) => {
  const { api, members, invite } = await begin(t);
  const boss = await addPerson(api, 'Boss', 'owner');
  const organization = members.replace('/members', '');
  const made = await boss.browser.call('POST', `${organization}/invites`, {
    email: 'ada@example.com',
    role: 'owner',
  });
  const token = made.json.data.link.split('token=')[1];
  const owner = await logInOwner(api);
  await owner.call('DELETE', `${members}/${boss.id}`);
  const late = await invite('late@example.com');
  api.advance(7 * 24 * 60 * 60 * 1000);
  for (const one of [token, late, 'made up', 'x'.repeat(10_000), '']) {
    const reply = await openBrowser(api).form(url, { token: one, ...ada });
    t.equal(reply.status, 400, one.slice(0, 20));
    t.match(reply.json, { message: /has ended, was used or was revoked/ });
    const page = await openBrowser(api).call('GET', `/invite?token=${one.slice(0, 200)}`);
    t.equal(page.status, 400);
    t.match(page.text, /Ask the person who invited you for a new one/);
  }
});

t.test('a deactivated account cannot join, and the invite stays', async (t) => {
  const { api, invite } = await begin(t);
  const person = await addPerson(api, 'Ada', null);
  await api.context.db
    .updateTable('users')
    .set({ isActive: 0, emailVerified: null })
    .where('id', '=', person.id)
    .execute();
  const token = await invite(person.email);
  const reply = await openBrowser(api).form(url, { token, ...ada });
  t.equal(reply.status, 403);
  t.equal((await openBrowser(api).call('GET', `/invite?token=${token}`)).status, 200);
});

t.test('429: with the limit of sign-up', async (t) => {
  const { api } = await begin(t, { RATE_LIMITING_DISABLED: '0' });
  const statuses = new Set<number>();
  for (let i = 0; i < 31; i += 1) statuses.add((await api.client('POST', url, { token: 'x' })).status);
  t.same([...statuses], [400, 429]);
});
