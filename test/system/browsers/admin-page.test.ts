/**
 * The page for operators in a real browser: why a request was refused, and what lifts it, from the page alone. Each state
 * is checked by axe in light and dark, wide and narrow.
 *
 * SCREENSHOTS=FOLDER keeps a picture of each.
 */
import { writeFileSync } from 'node:fs';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { eventually } from '#test/support/gateway-process.ts';
import { startOperator } from '#test/support/operator.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { startRedis } from '#test/support/redis.ts';
import { until } from '#test/support/until.ts';

const POLICIES = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }] }
policies:
  # What everybody may read.
  - { name: items, route: "GET /items", identifier: ip, limit: 3, window: 366d }
  - { name: keys, route: "GET /keys", identifier: api-key, limit: 3, window: 366d }
  - { name: watched, route: "GET /watched", identifier: ip, limit: 1, window: 366d, mode: shadow }
`;

const redis = await startRedis(t);
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

t.test('a wrong token shows a message, the right one opens the page', async (t) => {
  await page.goto(admin);
  await page.getByRole('heading', { name: 'Sign in' }).waitFor();
  await check(t, 'sign-in');
  await page.getByLabel('Admin token').fill('wrong');
  await button('Sign in').click();
  await page.getByText('this is not the value of GATEWAY_ADMIN_TOKEN').waitFor();
  await page.getByLabel('Admin token').fill('a long secret');
  await button('Sign in').click();
  await page.getByRole('navigation', { name: 'Views' }).waitFor();
  await page.getByText('Live', { exact: true }).waitFor();
  const [cookie] = await browser.cookies();
  t.match(cookie, { name: 'floodgate_session', httpOnly: true, sameSite: 'Strict' });
  const scripts = await page.evaluate('document.cookie');
  t.equal(scripts, '', 'scripts cannot read the cookie');
});

t.test('the overview: traffic, the store, denied clients, and grouped refusals', async (t) => {
  await send(3);
  await send(4);
  await send(2, '/watched');
  await send(5, '/open');
  await page.locator('#legend-refused', { hasText: 'refused 4' }).waitFor();
  t.match(await text('#status'), /Store available, p99 .* 2 processes/);
  t.match(await text('#cards'), /Latencyp50 ≤ [\d.]+ m?s *p99 ≤/);
  const limited = page.locator('#limited-rows tr');
  await limited.getByText('4', { exact: true }).waitFor();
  t.match(await limited.textContent(), /items/, 'the policy that denied the client');
  // The other process may have admitted requests before it denied one.
  t.match(await limited.textContent(), /≥ \d+ passed since/);
  const group = page.locator('#newest-rows tr', { hasText: 'GET /items' });
  await group.locator('.number', { hasText: '4' }).waitFor();
  t.equal(await group.count(), 1, 'one row for the same client and policy');
  await check(t, 'overview');
});

t.test('a page that opens shows no figure of the chart before it is known', async (t) => {
  const ids = ['legend-passed', 'legend-refused'];
  const opened = await newPage();
  t.teardown(() => opened.close());
  await opened.addInitScript(`
    const seen = (window.seen = []);
    new MutationObserver(() => {
      const texts = ${JSON.stringify(ids)}.map((id) => document.getElementById(id)?.textContent ?? '');
      if (texts.every((text) => text !== '') && String(texts) !== String(seen.at(-1))) seen.push(texts);
    }).observe(document, { subtree: true, childList: true, characterData: true });
  `);
  await opened.goto(`${admin}/#/overview`);
  await opened.locator('#status', { hasText: 'Store available' }).waitFor();
  const unknown = ['passed –', 'refused –'];
  const known = [/^passed [1-9]/, 'refused 4'];
  t.match(await opened.evaluate('seen'), [unknown, known]);
});

t.test('the chart: ranges, and figures by pointer and by keys', async (t) => {
  const chart = page.getByRole('slider', { name: 'Figures of the chart by time' });
  await page.getByLabel('Range of the chart').selectOption('300');
  await chart.hover();
  const reading = page.locator('#chart-reading');
  await reading.getByText(/passed \d/).waitFor();
  await page.mouse.move(0, 0);
  await until(async () => (await reading.textContent()) === '');
  await chart.focus();
  await page.keyboard.press('End');
  t.match(await chart.getAttribute('aria-valuetext'), /passed .*\/s, refused .*\/s, .*p50 /);
  const now = Number(await chart.getAttribute('aria-valuenow'));
  await page.keyboard.press('ArrowLeft');
  t.ok(Number(await chart.getAttribute('aria-valuenow')) <= now);
  await page.keyboard.press('Escape');
});

t.test('each view has an address', async (t) => {
  for (const view of ['Overview', 'Clients', 'Policies']) {
    await page.getByRole('link', { name: view, exact: true }).click();
    await page.locator('#views [aria-current=page]', { hasText: view }).waitFor();
    t.equal(new URL(page.url()).hash, `#/${view.toLowerCase()}`);
    t.equal(await page.locator('.view:not([hidden])').count(), 1);
  }
  await page.goBack();
  await page.locator('#views [aria-current=page]', { hasText: 'Clients' }).waitFor();
  await page.goForward();
  await page.locator('#views [aria-current=page]', { hasText: 'Policies' }).waitFor();
  t.match(await page.title(), /^Policies/);
  const row = page.locator('#policy-table tr', { hasText: 'items' });
  await row.getByText('4', { exact: true }).waitFor();
  t.equal(await row.locator('td').nth(1).textContent(), '3');
  await check(t, 'policies');
  await page.goto(`${admin}/#/no-such-view`);
  await page.locator('#views [aria-current=page]', { hasText: 'Overview' }).waitFor();
});

t.test('shows why a request was refused, by a click and by its id', async (t) => {
  const refused = await fetch(`${gateway}/items`);
  const id = refused.headers.get('x-gateway-decision') ?? '';
  const search = page.getByLabel('Search for a decision, client, path or policy');
  await page.getByRole('link', { name: 'Why was GET /items refused?' }).first().click();
  await dialog.getByText('The limit was reached: policy items allows 3 in 31622400 s').waitFor();
  await dialog.getByText(/policies.yaml:7, version/).waitFor();
  await dialog.getByRole('button', { name: 'Reset counters…' }).waitFor();
  t.match(new URL(page.url()).hash, /^#\/why\/[0-9a-z]{26}$/);
  await check(t, 'why');
  await page.keyboard.press('Escape');
  t.equal(await dialog.isVisible(), false, 'Escape closes the dialog');
  await page.waitForFunction("location.hash === '#/overview'");
  await eventually(
    'kept',
    async () => {
      await search.fill(id);
      await search.press('Enter');
      await dialog.waitFor();
      return (await dialog.textContent()) ?? '';
    },
    (told) => {
      if (told.includes('The limit was reached')) return true;
      void page.keyboard.press('Escape');
      return false;
    },
  );
  await dialog.getByRole('button', { name: 'Show the policy' }).click();
  await page.locator('#file-lines .current', { hasText: 'name: items' }).waitFor();
  t.equal(new URL(page.url()).hash, '#/policies/7');
  await search.fill('no such thing');
  await search.press('Enter');
  await page.getByText('No refusal matches “no such thing”').waitFor();
  await search.fill('/items');
  await search.press('Enter');
  await page.locator('#newest-rows').getByText('GET /items').waitFor();
  await button('Show the newest').click();
  await page
    .getByText(/^newest first/)
    .first()
    .waitFor();
  await search.fill('127.0.0.1');
  await search.press('Enter');
  await page.locator('#of-client-rows').getByText('GET /items').waitFor();
  await page.locator('#of-client-rows').getByText('127.0.0.1').waitFor();
  t.match(new URL(page.url()).hash, /^#\/clients\/[\w-]{22}$/, 'the URL has the digest, never the address');
  await check(t, 'client');
});

t.test('tries a request without sending it', async (t) => {
  await page.getByRole('link', { name: 'Policies', exact: true }).click();
  await page.getByLabel('Path', { exact: true }).fill('/items');
  await button('Try it').click();
  await page.getByText('It would be refused with 429').waitFor();
  await page.locator('#try-result').getByText('the client address is counted').waitFor();
  await page.locator('#try-result').getByText('3 in 366 d', { exact: true }).waitFor();
  await page.getByLabel('Path', { exact: true }).fill('/%2e%2e%00');
  await button('Try it').click();
  await page.getByText('It would be refused as malformed').waitFor();
  await page.getByLabel('Path', { exact: true }).fill('/items');
  await button('Try it').click();
  await page.locator('#try-result').getByText('the client address is counted').waitFor();
  await check(t, 'try');
});

t.test('puts a policy in shadow mode and back', async (t) => {
  const statuses = async (): Promise<readonly number[]> => send(4);
  await button('Put items in shadow').click();
  await dialog.getByText('It goes on counting and reporting').waitFor();
  await check(t, 'confirm');
  // The table has a date then, as it has for an hour that ends tomorrow.
  await dialog.getByLabel('For').selectOption('1 d');
  await dialog.getByRole('button', { name: 'Put in shadow' }).click();
  await page.getByText('items denies nothing for 1 d.').waitFor();
  await until(async () => (await statuses()).every((status) => status === 200), 'it passes');
  await page.locator('#policy-table').getByText('shadow until').waitFor();
  await check(t, 'shadow');
  await button('Let items deny again').click();
  await dialog.getByRole('button', { name: 'Deny again' }).click();
  await page.getByText('items denies again.').waitFor();
  await until(async () => (await statuses()).every((status) => status === 429), 'it is denied');
});

t.test('looks a client up, bans it, lifts the ban, and clears its counters', async (t) => {
  await page.getByRole('link', { name: 'Clients', exact: true }).click();
  await page.getByLabel('Address, key or digest', { exact: true }).fill('127.0.0.1');
  await button('Look up').click();
  const result = page.locator('#client-result');
  await result.getByText('127.0.0.1').waitFor();
  await result.getByRole('button', { name: 'Ban 127.0.0.1' }).click();
  await dialog.getByLabel('Reason, for colleagues').fill('a <b>test</b>');
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByText('127.0.0.1 is banned for 1 h.').waitFor();
  await result.getByText('(a <b>test</b>)').waitFor();
  await check(t, 'banned');
  await until(async () => (await send(4, '/open')).every((status) => status === 429), 'banned');
  await result.getByRole('button', { name: 'Unban 127.0.0.1' }).click();
  await dialog.getByRole('button', { name: 'Unban', exact: true }).click();
  await page.getByText('127.0.0.1 is let in again.').waitFor();
  await until(async () => (await send(4, '/open')).every((status) => status === 200), 'let in');

  await result.getByRole('button', { name: 'Reset counters…' }).click();
  await dialog.getByRole('button', { name: 'Reset counters' }).click();
  await page.getByText(/\d counters of 127.0.0.1 are reset\./).waitFor();
  await eventually(
    'it may begin afresh',
    () => send(1),
    ([status]) => status === 200,
  );
});

t.test('shows an edited file, and why a file with a mistake is not in use', async () => {
  await page.getByRole('link', { name: 'Policies', exact: true }).click();
  writeFileSync(operator.policyFile, POLICIES.replace('limit: 3', 'limit: 30'));
  await page.locator('#file-lines').getByText('limit: 30').waitFor();
  writeFileSync(operator.policyFile, POLICIES.replace('limit: 3', 'limit: many'));
  await page.locator('#file-refusal', { hasText: 'limit' }).waitFor();
  await page.locator('#status.bad', { hasText: 'The edited policy file is not in use' }).waitFor();
  await page.locator('#file-lines').getByText('limit: 30').waitFor();
  writeFileSync(operator.policyFile, POLICIES);
  await page.locator('#file-refusal').waitFor({ state: 'hidden' });
});

t.test('counts each refusal once after a reload', async (t) => {
  await page.getByRole('link', { name: 'Overview', exact: true }).click();
  const group = page.locator('#newest-rows tr', { hasText: 'GET /items' }).first();
  await page.reload();
  await group.waitFor();
  const before = Number(await group.locator('.number').textContent());
  await send(1, '/items');
  await send(40, '/keys', { 'x-api-key': 'one' });
  await page.locator('#newest-rows tr', { hasText: 'GET /keys' }).waitFor();
  const after = Number(await group.locator('.number').textContent());
  t.ok(after - before <= 1, `${before}, then ${after}`);
});

t.test(
  'after a ban from a row, both tables offer to lift it, also on a page that is opened later',
  async (t) => {
    await send(30, '/items');
    const inRow = (table: string) =>
      page.locator(`#${table}-rows tr`, { hasText: 'items' }).first().locator('.actions button');
    await inRow('limited').click();
    await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
    await page.getByText(/is banned for 1 h\./).waitFor();
    await page.mouse.move(0, 0);
    for (const table of ['newest', 'limited'])
      await inRow(table).getByText('Unban', { exact: true }).waitFor();
    await check(t, 'banned-in-both');
    await page.reload();
    for (const table of ['newest', 'limited'])
      await inRow(table).getByText('Unban', { exact: true }).waitFor();
    await inRow('limited').click();
    await dialog.getByRole('button', { name: 'Unban', exact: true }).click();
    await page.getByText(/is let in again\./).waitFor();
  },
);

t.test('the status line tells how many processes share the store', async () => {
  await startOperator(t, { GATEWAY_REDIS_URL: redis.url });
  await page
    .locator('#status', { hasText: /Store available, .* 2 processes of 3 that share the store/ })
    .waitFor();
});

t.test('the status line tells that the store is down', async (t) => {
  await redis.kill();
  await until(async () => (await send(2, '/watched')).every((status) => status === 200), 'requests go on');
  await page
    .locator('#status.bad', { hasText: /Store unavailable since .* for \d of 2 processes/ })
    .waitFor();
  await check(t, 'outage');
  await page.getByRole('link', { name: 'Policies', exact: true }).click();
  await page.locator('#file-about', { hasText: 'the store is unavailable' }).waitFor();
  const row = page.locator('#policy-table tr', { hasText: 'watched' });
  await eventually(
    'counted',
    async () => {
      await send(2, '/watched');
      return (await row.locator('td').nth(4).textContent()) ?? '';
    },
    (told) => Number(told) > 0,
  );
  await redis.restart();
  await page.locator('#status:not(.bad)', { hasText: 'Store available' }).waitFor();
});

t.test('signing out hides all data, also in another tab', async (t) => {
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

t.test('the page sent requests only to the gateway, and logged no errors', async (t) => {
  t.strictSame(complaints, []);
});
