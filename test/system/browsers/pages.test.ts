/**
 * The pages for people in a real browser, through the gateway, without any script: from the first page over sign-up and
 * login to an API key and out again. Each page is checked by axe in light and dark, wide and narrow.
 *
 * SCREENSHOTS=FOLDER keeps a picture of each.
 */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { startMailServer } from '#test/support/smtp.ts';
import { startStack } from '#test/support/stack.ts';

const mails = await startMailServer(t);
const apiEnv = { SMTP_URL: mails.url, SIGNUP_ENABLED: '1' };
const stack = await startStack(t, { apiEnv });
const { origin } = stack;
const browser = await startBrowser(t);
const complaints: string[] = [];
const page = watchPage(
  await browser.newPage(),
  complaints,
  (url) => url.startsWith(origin) || url.startsWith('data:'),
);
const check = (t: Test, name: string, opened: Page = page): Promise<void> => checkPage(t, opened, name);

const link = (name: string) => page.getByRole('link', { name, exact: true });
const button = (name: string) => page.getByRole('button', { name, exact: true });
const heading = (name: string) => page.getByRole('heading', { level: 1, name, exact: true }).waitFor();

t.test('sign up, with a mistake first', async (t) => {
  await page.goto(origin);
  await heading('Surveys and feedback');
  await check(t, 'first');
  await link('Create an account').click();
  await heading('Create an account');
  await check(t, 'sign-up');
  await page.getByLabel('Name').fill('Zoë');
  await page.getByLabel('E-mail').fill('zoe@example.com');
  await page.getByLabel('Password').fill('short');
  await button('Create the account').click();
  await page.getByText('Password must have 8 to 128 characters').waitFor();
  t.equal(await page.getByLabel('E-mail').inputValue(), 'zoe@example.com', 'the page keeps the input');
  await check(t, 'sign-up-mistake');
  await page.getByLabel('Password').fill('Password1');
  await button('Create the account').click();
  await heading('Confirm your e-mail address');
  await check(t, 'sign-up-done');
});

t.test('log in too early, then open the mailed link', async (t) => {
  await link('Log in').click();
  await page.getByLabel('E-mail').fill('zoe@example.com');
  await page.getByLabel('Password').fill('Password1');
  await button('Log in').click();
  await page.getByText('Email Verification is Pending').waitFor();
  await check(t, 'login-unconfirmed');
  const mail = await mails.mail(1);
  await page.goto(/http:\S+/.exec(mail.text)?.[0] ?? '');
  await heading('Confirm your e-mail address');
  await check(t, 'confirm');
  await page.getByLabel('Name', { exact: true }).fill('Zoe');
  await page.getByLabel('Password', { exact: true }).fill('Password1');
  await button('Confirm and log in').click();
  await heading('Your account');
  t.equal(page.url(), `${origin}/account`);
  await page.getByText('zoe@example.com').waitFor();
  await check(t, 'account-empty');
});

t.test('create a key, use it, revoke it', async (t) => {
  await page.getByLabel('Name of the key').fill('n8n');
  await button('Make the key').click();
  await heading('Your new API key');
  await check(t, 'new-key');
  const key = ((await page.locator('pre').first().textContent()) ?? '').trim();
  const me = await fetch(`${origin}/api/v1/management/me`, { headers: { 'x-api-key': key } });
  t.equal(me.status, 200);
  await link('Back to your account').click();
  await page.getByText('Revoke', { exact: false }).first().click();
  await check(t, 'account');
  await button('Revoke n8n').click();
  await page.getByText('The key is revoked.').waitFor();
  const after = await fetch(`${origin}/api/v1/management/me`, { headers: { 'x-api-key': key } });
  t.equal(after.status, 401);
});

t.test('log out, forget the password, choose another, log in', async (t) => {
  await button('Log out').click();
  await page.getByText('You are logged out.').waitFor();
  await check(t, 'logged-out');
  await page.getByLabel('E-mail').fill('zoe@example.com');
  await page.getByLabel('Password').fill('forgotten');
  await button('Log in').click();
  await page.getByText('Invalid credentials').waitFor();
  await check(t, 'login-refused');
  await link('Forgot your password?').click();
  await check(t, 'forgot');
  await page.getByLabel('E-mail').fill('zoe@example.com');
  await button('Send the mail').click();
  await page.getByText('it is on its way').waitFor();
  await check(t, 'forgot-done');
  const mail = await mails.mail(2);
  await page.goto(/http:\S+/.exec(mail.text)?.[0] ?? '');
  await heading('Choose a new password');
  await check(t, 'reset');
  await page.getByLabel('New password').fill('Password2');
  await button('Change the password').click();
  await page.getByText('Your password is changed').waitFor();
  await page.getByLabel('E-mail').fill('zoe@example.com');
  await page.getByLabel('Password').fill('Password2');
  await button('Log in').click();
  await heading('Your account');
});

t.test('with the keyboard alone, and through another host name', async (t) => {
  await button('Log out').click();
  const { port } = new URL(origin);
  await page.goto(`http://localhost:${port}/auth/login`);
  await page.getByLabel('E-mail').focus();
  await page.keyboard.type('zoe@example.com');
  await page.keyboard.press('Tab');
  await page.keyboard.type('Password2');
  await page.keyboard.press('Enter');
  await heading('Your account');
  t.equal(page.url(), `http://localhost:${port}/account`, 'the cookies belong to this host');
});

t.test('pages for broken links and links that need one more step', async (t) => {
  for (const [path, name, title] of [
    ['/nothing', 'error', 'There is no such page'],
    ['/s/csomesurvey', 'survey', 'This survey cannot be shown here'],
    ['/verify-email-change?token=x', 'email-change', 'Change your e-mail address'],
    ['/auth/verify?token=x', 'confirm-ended', 'Confirm your e-mail address'],
  ] as const) {
    await page.goto(origin + path);
    await heading(title);
    await check(t, name);
  }
});

t.test('no page violated its own policy or loaded anything from elsewhere', async (t) => {
  t.strictSame(
    complaints.filter((text) => !text.startsWith('http://localhost:')),
    [],
  );
});
