/** An invitation in a real browser, through the gateway: with a new account, and with an existing one. */
import type { Page } from 'playwright-core';
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { checkPage } from '#test/support/page-check.ts';
import { startStack } from '#test/support/stack.ts';

// There is no mail server, so the link is in the reply; sign-up is closed.
const { origin } = await startStack(t);

/** Opens a page in a separate browser. */
async function openPage(): Promise<Page> {
  return (await startBrowser(t)).newPage();
}

const owner = await openPage();
await owner.goto(`${origin}/auth/login`);
await owner.getByLabel('E-mail').fill('owner@example.com');
await owner.getByLabel('Password').fill('Password1');
await owner.getByRole('button', { name: 'Log in' }).click();
await owner.getByText('You are logged in as').waitFor();

/** Invites as a member of the first organization. @returns the link */
async function invite(email: string): Promise<string> {
  const { data: organizations } = await (await owner.request.get(`${origin}/api/v1/organizations`)).json();
  const url = `${origin}/api/v1/organizations/${organizations[0].id}/invites`;
  return (await (await owner.request.post(url, { data: { email } })).json()).data.link;
}

t.test('sign-up is closed, and no link leads to it', async (t) => {
  const page = await openPage();
  await page.goto(`${origin}/auth/signup`);
  await page.getByText('Ask an owner or manager of your organization to invite you').waitFor();
  await checkPage(t, page, 'sign-up-closed');
  await page.getByRole('link', { name: 'Log in' }).click();
  await page.getByLabel('Password').waitFor();
  t.equal(await page.getByRole('link', { name: 'Create an account' }).count(), 0);
});

t.test('a new person: a mistake first, then the account', async (t) => {
  const page = await openPage();
  const link = await invite('ada@example.com');
  await page.goto(link);
  await page.getByText('Owner invites ada@example.com to My organization, as member.').waitFor();
  await checkPage(t, page, 'invite');
  await page.getByLabel('Your name').fill('Ada');
  await page.getByLabel('Choose a password').fill('short');
  await page.getByRole('button').click();
  await page.getByText('A password has 8 to 128 characters').waitFor();
  t.equal(await page.getByLabel('Your name').inputValue(), 'Ada');
  await checkPage(t, page, 'invite-mistake');
  await page.getByLabel('Choose a password').fill('Password1');
  await page.getByRole('button').click();
  await page.getByText('You are logged in as').waitFor();
  await page.goto(link);
  await page.getByText('This invitation does not work').waitFor();
  await checkPage(t, page, 'invite-used');
});

t.test('a person with an account logs in on the page, and accepts', async (t) => {
  const page = await openPage();
  const { data: organizations } = await (await owner.request.get(`${origin}/api/v1/organizations`)).json();
  const members = `${origin}/api/v1/organizations/${organizations[0].id}/members`;
  const { data } = await (await owner.request.get(members)).json();
  const ada = data.find(({ email }: { email: string }) => email === 'ada@example.com');
  t.equal((await owner.request.delete(`${members}/${ada.id}`)).status(), 200);
  await page.goto(await invite('ada@example.com'));
  await page.getByText('This address has an account.').waitFor();
  await checkPage(t, page, 'invite-known');
  await page.getByLabel('Password').fill('Password1');
  await page.getByRole('button', { name: 'Log in' }).click();
  await page.getByRole('button', { name: 'Accept the invitation' }).waitFor();
  await checkPage(t, page, 'invite-mine');
  await page.getByRole('button', { name: 'Accept the invitation' }).click();
  await page.getByText('You are logged in as').waitFor();
  t.equal((await (await owner.request.get(members)).json()).data.length, 2);
});
