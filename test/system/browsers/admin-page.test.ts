/**
 * The page for operators in a real browser: why a request was refused, and what lifts it, from the page alone. Each state
 * is checked by axe in light and dark, wide and narrow.
 *
 * SCREENSHOTS=FOLDER keeps a picture of each.
 */
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { eventually } from '#test/support/gateway-process.ts';
import { startOperator } from '#test/support/operator.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { startRedis } from '#test/support/redis.ts';

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }] }
policies:
  # What everybody may read.
  - { name: items, route: "GET /items", identifier: ip, limit: 3, window: 1d }
  - { name: keys, route: "GET /keys", identifier: api-key, limit: 3, window: 1d }
  - { name: watched, route: "GET /watched", identifier: ip, limit: 1, window: 1d, mode: shadow }
`;

const redis = await startRedis();
t.teardown(() => redis.close());
const operator = await startOperator(
  t,
  { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2', GATEWAY_ADMIN_TOKEN: 'a long secret' },
  POLICIES,
);
const { admin, send, gateway } = operator;
const browser = await startBrowser(t);
const complaints: string[] = [];
const newPage = async (): Promise<Page> =>
  watchPage(await browser.newPage(), complaints, (url) => url.startsWith(admin));
const page = await newPage();
const check = (t: Test, name: string): Promise<void> => checkPage(t, page, name);

const button = (name: string | RegExp) => page.getByRole('button', { name, exact: true });
const dialog = page.getByRole('dialog');
const text = async (selector: string): Promise<string> => (await page.locator(selector).textContent()) ?? '';

t.test('a wrong token is refused in words, the right one opens the page', async (t) => {
  await page.goto(admin);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await check(t, 'sign-in');
  await page.getByLabel('Admin token').fill('wrong');
  await button('Sign in').click();
  await page.getByText('this is not the value of GATEWAY_ADMIN_TOKEN').waitFor();
  await page.getByLabel('Admin token').fill('a long secret');
  await button('Sign in').click();
  await page.getByRole('heading', { name: 'Now' }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  const [cookie] = await browser.cookies();
  t.match(cookie, { name: 'floodgate_session', httpOnly: true, sameSite: 'Strict' });
  const scripts = await page.evaluate('document.cookie');
  t.equal(scripts, '', 'no script can read it');
});

t.test('traffic shows by itself: numbers, the store, the margin of the file, who is limited', async (t) => {
  await send(3);
  await send(4);
  await send(2, '/watched');
  await send(5, '/open');
  await page.locator('#policy-table tr', { hasText: 'items' }).getByText('4', { exact: true }).waitFor();
  const line = page.locator('#file-lines li', { hasText: 'name: items' });
  await line.locator('.denied', { hasText: '4' }).waitFor();
  t.equal(await line.locator('.allowed').textContent(), '3');
  t.match(await text('#cards'), /Store.*available.*breaker closed/s);
  t.match(await text('#cards'), /Processes2/);
  await page.locator('#limited-list').getByText('times').first().waitFor();
  await page.locator('#denial-list').getByText('GET /items').first().waitFor();
  await page.locator('#hour-legend', { hasText: 'refused 4' }).waitFor();
  await check(t, 'overview');
});

t.test('why it was refused, by a click and by its id', async (t) => {
  const refused = await fetch(`${gateway}/items`);
  const id = refused.headers.get('x-gateway-decision') ?? '';
  await button('Why was GET /items refused?').first().click();
  await dialog.getByText('The limit was reached: policy items allows 3 in 86400 s').waitFor();
  await dialog.getByText(/policies.yaml:7, version/).waitFor();
  await dialog.getByRole('button', { name: 'Clear counters…' }).waitFor();
  await check(t, 'why');
  await page.keyboard.press('Escape');
  t.equal(await dialog.isVisible(), false, 'the keyboard closes it');
  await eventually(
    'kept',
    async () => {
      await page.getByLabel('Decision id, path, policy or kind').fill(id);
      await button('Search').click();
      await dialog.waitFor();
      return (await dialog.textContent()) ?? '';
    },
    (told) => {
      if (told.includes('The limit was reached')) return true;
      void page.keyboard.press('Escape');
      return false;
    },
  );
  await dialog.getByRole('button', { name: 'Show the row' }).click();
  t.match(await text('#file-lines .current'), /name: items/);
  await page.getByLabel('Decision id, path, policy or kind').fill('no such thing');
  await button('Search').click();
  await page.getByText('Nothing is found.').waitFor();
  await page.getByLabel('Decision id, path, policy or kind').fill('');
  await page.getByLabel('Client: address, key or digest').fill('127.0.0.1');
  await button('Search').click();
  await page.getByText('Shown are those found.').waitFor();
  await page.locator('#denial-list').getByText('127.0.0.1').first().waitFor();
  await check(t, 'found');
  await page.getByLabel('Client: address, key or digest').fill('');
  await button('Search').click();
});

t.test('a request is tried without being sent', async (t) => {
  await page.getByLabel('Path', { exact: true }).fill('/items');
  await button('Try it').click();
  await page.getByText('It would be refused with 429').waitFor();
  await page.locator('#try-result').getByText('the client address is counted').waitFor();
  await page.getByLabel('Path', { exact: true }).fill('/%2e%2e%00');
  await button('Try it').click();
  await page.getByText('It would be refused as malformed').waitFor();
  await page.getByLabel('Path', { exact: true }).fill('/items');
  await button('Try it').click();
  await page.locator('#try-result').getByText('the client address is counted').waitFor();
  await check(t, 'try');
});

t.test('a policy is put in shadow and taken back', async (t) => {
  const statuses = async (): Promise<readonly number[]> => send(4);
  await button('Put items in shadow').click();
  await dialog.getByText('It goes on counting and reporting').waitFor();
  await check(t, 'confirm');
  await dialog.getByRole('button', { name: 'Put in shadow' }).click();
  await page.getByText('items denies nothing for 1 h.').waitFor();
  await eventually('it passes', statuses, (seen) => seen.every((status) => status === 200));
  await page.locator('#file-lines').getByText('in shadow until').waitFor();
  await check(t, 'shadow');
  await button('Undo').click();
  await page.getByText('items denies again.').waitFor();
  await eventually('it is denied', statuses, (seen) => seen.every((status) => status === 429));
});

t.test('a client is looked up, banned, let in again, and its counters cleared', async (t) => {
  await page.getByLabel('Address, key or digest', { exact: true }).fill('127.0.0.1');
  await button('Look up').click();
  const result = page.locator('#client-result');
  await result.getByText('127.0.0.1').waitFor();
  await result.getByRole('button', { name: 'Ban…' }).click();
  await dialog.getByLabel('Reason, for colleagues').fill('a <b>test</b>');
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByText('127.0.0.1 is banned for 1 h.').waitFor();
  await result.getByText('(a <b>test</b>)').waitFor();
  await check(t, 'banned');
  await eventually(
    'banned',
    () => send(4, '/open'),
    (seen) => seen.every((status) => status === 429),
  );
  await result.getByRole('button', { name: 'Unban…' }).click();
  await dialog.getByRole('button', { name: 'Unban', exact: true }).click();
  await page.getByText('127.0.0.1 is let in again.').waitFor();
  await button('Undo').click();
  await page.getByText('127.0.0.1 is banned for').waitFor();
  await button('Undo').click();
  await page.getByText('127.0.0.1 is not banned any more.').waitFor();
  await eventually(
    'let in',
    () => send(4, '/open'),
    (seen) => seen.every((status) => status === 200),
  );

  await result.getByRole('button', { name: 'Clear counters…' }).click();
  await dialog.getByRole('button', { name: 'Clear them' }).click();
  await page.getByText('are cleared in 5 seconds').waitFor();
  await button('Undo').click();
  await page.getByText('stay as they are').waitFor();
  await result.getByRole('button', { name: 'Clear counters…' }).click();
  await dialog.getByRole('button', { name: 'Clear them' }).click();
  await page.getByText(/\d counters of 127.0.0.1 are cleared\./).waitFor();
  await eventually(
    'it may begin afresh',
    () => send(1),
    ([status]) => status === 200,
  );
});

t.test('a dropped log is replayed under the edited file', async (t) => {
  const line = (address: string): string =>
    `${address} - - [22/Nov/2026:08:00:00 +0000] "GET /items HTTP/1.1" 200 2 "-" "a"\n`;
  const log = line('192.0.2.1').repeat(3) + line('192.0.2.2');
  const field = page.getByLabel('Edited policy file');
  t.equal(await field.inputValue(), POLICIES);
  await field.fill(POLICIES.replace('limit: 3', 'limit: many'));
  await page.locator('#replay-state').getByText('Edited.').waitFor();
  const dataTransfer = await page.evaluateHandle(
    `(() => {
      const transfer = new DataTransfer();
      transfer.items.add(new File([${JSON.stringify(log)}], 'access.log'));
      return transfer;
    })()`,
  );
  await page.locator('#replay-drop').dispatchEvent('drop', { dataTransfer });
  await button('Replay').click();
  const mistake = page.locator('#replay-mistakes');
  await mistake.getByText(/limit/).waitFor();
  await check(t, 'replay-mistake');
  await mistake.getByRole('button', { name: /^Line 7, column \d+$/ }).click();
  const marked = await page.evaluate(
    "(({ value, selectionStart, selectionEnd }) => value.slice(selectionStart, selectionEnd))(document.getElementById('replay-text'))",
  );
  t.match(marked, /^ {2}- \{ name: items.*limit: many/);

  await field.fill(POLICIES.replace('limit: 3', 'limit: 1'));
  await page.getByLabel(/^Access log/).focus();
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  const result = page.locator('#replay-result');
  await result.getByText('The edited file denies 2 requests of 1 client more.').waitFor();
  const row = page.locator('#replay-table tr', { hasText: 'items' });
  t.strictSame(
    await row
      .locator('td')
      .allTextContents()
      .then((cells) => cells.slice(0, 4)),
    ['0 → 2', '4 → 2', '2', '0 → 1'],
  );
  await result.getByRole('heading', { name: 'Newly denied' }).waitFor();
  t.equal(await mistake.textContent(), '');
  await check(t, 'replay');

  const nonsense = { name: 'a.txt', mimeType: 'text/plain', buffer: Buffer.from('nonsense\n') };
  await page.getByLabel(/^Access log/).setInputFiles(nonsense);
  await button('Replay').click();
  await page.getByText(/its first lines are no access log/).waitFor();
  await button('Back to the file in use').click();
  t.equal(await field.inputValue(), POLICIES);
});

t.test('an edited file shows, and one with a mistake says why it is not in use', async (t) => {
  const { writeFileSync } = await import('node:fs');
  writeFileSync(operator.policyFile, POLICIES.replace('limit: 3', 'limit: 30'));
  await page.locator('#file-lines').getByText('limit: 30').waitFor();
  t.match(
    await page.getByLabel('Edited policy file').inputValue(),
    /limit: 30/,
    'nobody has edited it there',
  );
  writeFileSync(operator.policyFile, POLICIES.replace('limit: 3', 'limit: many'));
  await page.locator('#file-refusal', { hasText: 'limit' }).waitFor();
  await page.locator('#file-lines').getByText('limit: 30').waitFor();
});

t.test('after a reload each refusal stands there once', async (t) => {
  const ids = () =>
    page.locator('#denial-list li').evaluateAll((items) => items.map((item) => item.getAttribute('data-id')));
  await page.reload();
  await page.locator('#cards').getByText('available').waitFor();
  await page.locator('#denial-list li').nth(5).waitFor();
  // One more look of the page at the gateway.
  await send(1, '/items');
  const shown = await ids();
  t.equal(new Set(shown).size, shown.length);
});

t.test('while the store is away the page says so, and what is decided without it', async (t) => {
  await redis.kill();
  await eventually(
    'requests go on',
    () => send(2, '/watched'),
    (seen) => seen.every((status) => status === 200),
  );
  await page.locator('#cards', { hasText: /Storeawaybreaker open in \d of 2 since/ }).waitFor();
  await page.locator('#file-about', { hasText: 'the store is away' }).waitFor();
  const row = page.locator('#policy-table tr', { hasText: 'watched' });
  await eventually(
    'counted',
    async () => {
      await send(2, '/watched');
      return (await row.locator('td').nth(3).textContent()) ?? '';
    },
    (told) => Number(told) > 0,
  );
  await check(t, 'outage');
  await redis.restart();
  await page.locator('#cards', { hasText: /Storeavailablebreaker closed/ }).waitFor();
});

t.test('who signs out sees nothing more, nor does another tab', async (t) => {
  const other = await newPage();
  await other.goto(admin);
  await other.getByText('Live', { exact: true }).waitFor();
  await button('Sign out').click();
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await other.getByRole('heading', { name: 'Sign in' }).waitFor();
  t.equal((await browser.cookies()).length, 0);
  t.match(operator.process.output(), /"by":"session [0-9a-f]{6}, from 127.0.0.1","change":"ban"/);
  t.notMatch(operator.process.output(), /a long secret/);
});

t.test('the page asked nobody else, and nothing went wrong in it', async (t) => {
  t.strictSame(complaints, []);
});
