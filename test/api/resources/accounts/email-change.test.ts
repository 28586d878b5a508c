/** PUT /api/v1/profile/email and the link that confirms it. */
import t from 'tap';
import { apiKey, startApi, type TestApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { lastMail, mailsOf } from '#test/support/mails.ts';

const url = '/api/v1/profile/email';
const wish = { email: 'New@Example.com', password: 'Password1' };
const tokenOf = async (api: TestApi): Promise<string> => (await lastMail(api, 'changeEmail')).token;
const linkTo = (token: string): string => `/verify-email-change?token=${token}`;

t.test('200: the button on the link’s page changes the address once, and ends all sessions', async (t) => {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  t.equal((await browser.call('PUT', url, wish)).status, 200);
  t.equal((await browser.call('GET', '/api/v1/me')).json.email, 'owner@example.com', 'not changed yet');
  const token = await tokenOf(api);
  const page = await api.client('GET', linkTo(token));
  t.equal(page.status, 200);
  t.match(page.headers['content-type'], 'text/html');
  t.match(page.text, 'new@example.com');
  t.match(page.text, '<form method="post" action="/verify-email-change">');
  t.equal(
    (await browser.call('GET', '/api/v1/me')).json.email,
    'owner@example.com',
    'opening the link changes nothing, because mail scanners open links',
  );
  const opened = await api.client('POST', '/verify-email-change', `token=${token}`);
  t.equal(opened.status, 200);
  t.match(opened.headers['content-type'], 'text/html');
  t.equal((await browser.call('GET', '/api/v1/me')).status, 401);
  t.match((await openBrowser(api).logIn('owner@example.com', 'Password1')).json.url, /error=/);
  t.notMatch((await openBrowser(api).logIn('new@example.com', 'Password1')).json.url, /error=/);
  t.equal((await api.client('POST', '/verify-email-change', `token=${token}`)).status, 400, 'it works once');
  t.equal((await api.client('GET', linkTo(token))).status, 400);
  const told = await mailsOf(api, 'emailChanged');
  t.match(told, [{ recipient: 'owner@example.com' }], 'the old address gets a notice');
});

t.test('400: a wrong password, the same address, a bad address; 401: a key', async (t) => {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  const wrong = await browser.call('PUT', url, { ...wish, password: 'Wrong1234' });
  t.equal(wrong.status, 400);
  t.match(wrong.json.details, { password: String });
  t.equal((await browser.call('PUT', url, { ...wish, email: 'OWNER@example.com' })).status, 400);
  t.equal((await browser.call('PUT', url, { ...wish, email: 'x' })).status, 400);
  t.equal((await browser.call('PUT', url, { email: wish.email })).status, 400);
  t.equal((await api.client('PUT', url, wish, { 'x-api-key': apiKey })).status, 401);
  t.equal((await api.client('PUT', url, wish)).status, 401);
});

t.test('a taken address: the same reply and no mail; taken later: the link does not work', async (t) => {
  const api = await startApi(t);
  const browser = await logInOwner(api);
  await api.client('POST', '/api/auth/signup', {
    name: 'X',
    email: 'taken@example.com',
    password: 'Password1',
  });
  const free = await browser.call('PUT', url, wish);
  const token = await tokenOf(api);
  api.advance(1);
  const taken = await browser.call('PUT', url, { ...wish, email: 'taken@example.com' });
  t.equal(taken.text, free.text);
  t.equal(await tokenOf(api), token, 'no other link is sent');
  await api.client('POST', '/api/auth/signup', { name: 'X', email: wish.email, password: 'Password1' });
  t.equal((await api.client('POST', '/verify-email-change', `token=${token}`)).status, 400);
  t.equal((await browser.call('GET', '/api/v1/me')).status, 200, 'the session is still valid');
  t.equal((await api.client('GET', '/verify-email-change')).status, 400);
  t.equal((await api.client('POST', '/verify-email-change')).status, 400);
});
