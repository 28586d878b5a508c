/**
 * The page for operators during a flood: who floods, the page while the gateway is down, and its bounded size.
 *
 * PICTURES=docs/pictures writes the pictures of the documentation.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t, { type Test } from 'tap';
import { POLICY_ROWS_MAX } from '#gateway/bans/rows.ts';
import { identityOf } from '#gateway/identity/digest.ts';
import { startTestAdmin } from '#test/support/admin.ts';
import { startBrowser } from '#test/support/browser.ts';
import { BEHIND_PROXY, type Owner, policyFile, startTestGateway } from '#test/support/gateway.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { until } from '#test/support/until.ts';

const POLICIES = policyFile(
  'name: login, route: POST /api/auth/callback/credentials, identifier: ip, limit: 10, window: 15m',
  'name: survey-responses, route: "POST /api/v1/client/{environment}/responses", identifier: ip, limit: 60, window: 1m',
  'name: environment, route: "GET /api/v1/client/{environment}/environment", identifier: ip, limit: 100, window: 1m',
  'name: management, route: "* /api/v1/management/*", identifier: api-key, limit: 100, window: 1m',
  'name: share-link, route: "GET /s/{survey}", identifier: ip, limit: 30, window: 1m, mode: shadow',
);
const REQUESTS = [
  'POST /api/auth/callback/credentials',
  'POST /api/v1/client/cm3x9/responses',
  'GET /api/v1/client/cm3x9/environment',
  'GET /s/kq2v8',
  'GET /health',
] as const;
const VIEWS = ['overview', 'clients', 'policies'] as const;
/** Address of the client that floods most. */
let floods = '#/clients';
/** Half a minute in each second, so that the chart has data. */
const SPEED = 30;

const browser = await startBrowser(t);
const complaints: string[] = [];

async function start(t: Owner, policies: string) {
  const from = Date.now();
  const clock = (): number => from + (Date.now() - from) * SPEED;
  const gateway = await startTestGateway(t, {
    policies,
    env: { ...BEHIND_PROXY, GATEWAY_SHOW_ADDRESSES: '24h' },
    clock,
    wallClock: clock,
  });
  let closeAdmin: () => unknown = () => undefined;
  const owner: Owner = {
    teardown(close) {
      closeAdmin = close;
    },
  };
  const origin = await startTestAdmin(owner, gateway, { clock });
  t.teardown(() => closeAdmin());
  const page = watchPage(await browser.newPage(), complaints, (url) => url.startsWith(origin));
  return {
    page,
    origin,
    control: gateway.gateway.control,
    closeAdmin: () => closeAdmin(),
    openAdmin: () => startTestAdmin(owner, gateway, { clock, port: Number(new URL(origin).port) }),
    async send(request: string, address: string): Promise<void> {
      const [method = '', path = ''] = request.split(' ');
      const headers = { 'x-forwarded-for': address };
      await (await fetch(gateway.origin + path, { method, headers })).arrayBuffer();
    },
  };
}

const { page, origin, control, send, closeAdmin, openAdmin } = await start(t, POLICIES);
const dialog = page.getByRole('dialog');
const button = (name: string) => page.getByRole('button', { name, exact: true });

/** Two clients flood, and others behave. */
async function flood(times: number): Promise<void> {
  for (let i = 0; i < times; i++) {
    const others = REQUESTS.map((request, k) => send(request, `203.0.113.${(i + 7 * k) % 50}`));
    const floods = [0, 1, 2].map((k) => send(REQUESTS[k % 2] ?? '', `198.51.100.${k % 2}`));
    await Promise.all([...others, ...floods]);
  }
}

t.test('shows the flooding client, and its address', async (t) => {
  await page.goto(origin);
  await page.getByText('Live', { exact: true }).waitFor();
  t.notMatch(await page.locator('#status').textContent(), /newcomers/i, 'no word of newcomers without them');
  const chart = page.getByRole('slider');
  // Twelve steps of the chart.
  await until(async () => {
    await flood(5);
    await chart.focus();
    await page.keyboard.press('End');
    return Number(await chart.getAttribute('aria-valuemax')) >= 12;
  });
  await page.keyboard.press('Escape');
  const first = page.locator('#limited-rows tr').first();
  await first.getByText('198.51.100.', { exact: false }).waitFor();
  await checkPage(t, page, 'flood');
  await first.getByRole('link').click();
  await page.locator('#client-result').getByText('198.51.100.').waitFor();
  await page.locator('#of-client-rows tr').first().waitFor();
  floods = new URL(page.url()).hash;
  t.notMatch(floods, /198\.51/, 'the page’s URL has no client address');
});

t.test('on a phone, without scrolling: the flooding client, its policy, Ban, and the ban', async (t) => {
  await page.setViewportSize({ width: 360, height: 800 });
  const isInView = async (row: string, text: RegExp): Promise<void> => {
    await page.evaluate('window.scrollTo(0, 0)');
    const first = page.locator(row).first();
    t.match(await first.textContent(), text);
    const box = await first.boundingBox();
    const end = (box?.y ?? 800) + (box?.height ?? 0);
    t.ok(end < 800, `${row} ends at ${end}`);
  };
  await page.goto(`${origin}/#/overview`);
  await isInView('#limited-rows tr', /198\.51\.100\.\d.*(?:survey-responses|login).*Ban/);
  await page.locator('#limited-rows').getByRole('button', { name: /^Ban / }).first().click();
  await dialog.getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByText(/is banned for 1 h\.$/).waitFor();
  await page.goto(`${origin}/#/clients`);
  await page.locator('#bans-rows tr').first().waitFor();
  t.equal(await page.locator('#change').isVisible(), false, 'the message is gone in the next view');
  await isInView('#bans-rows tr', /198\.51\.100\.\d.*operator.*Unban/);
  await page
    .locator('#bans-rows')
    .getByRole('button', { name: /^Unban / })
    .first()
    .click();
  await dialog.getByRole('button', { name: 'Unban', exact: true }).click();
  await page.locator('#bans-total').getByText('nobody is banned').waitFor();
  t.equal(await page.locator('#bans table').isVisible(), false, 'an empty table is hidden');
  await page.goto(`${origin}/#/overview`);
});

t.test('a scraper of many paths is one row, and leaves room for the others', async (t) => {
  await page.goto(`${origin}/#/overview`);
  for (let i = 0; i < 30; i++) await send(`GET /api/v1/client/${i % 12}/environment`, '192.0.2.99');
  await until(async () => {
    await Promise.all(
      Array.from({ length: 20 }, (_, i) => send(`GET /api/v1/client/${i % 12}/environment`, '192.0.2.99')),
    );
    return (await page.locator('#newest-rows', { hasText: /refusals on \d+ paths/ }).count()) === 1;
  });
  const rows = page.locator('#newest-rows tr', { hasText: '192.0.2.99' });
  t.equal(await rows.count(), 1);
  t.ok((await page.locator('#newest-rows tr').count()) > 1);
  await checkPage(t, page, 'scraper');
});

t.test('with the keyboard alone: to the flooding client, its ban, and back', async (t) => {
  await page.keyboard.press('Escape');
  await page.goto(`${origin}/#/overview`);
  await page.locator('#limited-rows tr').first().waitFor();
  const focused = () => page.evaluate('document.activeElement.getAttribute("aria-label") ?? ""');
  await page.locator('#chart').focus();
  for (let i = 0; i < 5; i++) {
    await page.keyboard.press('Tab');
    if (/^Ban 198/.test(String(await focused()))) break;
  }
  t.match(await focused(), /^Ban 198\.51\.100\.\d$/);
  await page.keyboard.press('Enter');
  await dialog.locator('[name=seconds]').waitFor();
  t.equal(await page.evaluate('document.activeElement.name'), 'seconds', 'the first field has the focus');
  await page.keyboard.press('Tab');
  await page.keyboard.type('floods');
  await page.keyboard.press('Enter');
  await page.getByText(/^198\.51\.100\.\d is banned for 1 h\.$/).waitFor();
  await page
    .locator('#limited-rows')
    .getByRole('button', { name: /^Unban 198/ })
    .waitFor();
  t.match(await focused(), /^Unban 198\.51\.100\.\d$/, 'the way back has the focus');
  await page.keyboard.press('Enter');
  await page.keyboard.press('Enter');
  await page.getByText(/is let in again/).waitFor();
  await button('Dismiss').click();
});

t.test('a picture of each view', async (t) => {
  let isFlooding = true;
  const flooding = (async () => {
    while (isFlooding) await flood(1);
  })();
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.mouse.move(0, 0);
  const session = await browser.newCDPSession(page);
  const size = { width: 1280, height: 800, deviceScaleFactor: 0.625, mobile: false };
  await session.send('Emulation.setDeviceMetricsOverride', size);
  await control.ban(identityOf(floods.replace('#/clients/', '')), 3_600_000, 'floods the login');
  for (const view of VIEWS) {
    await page.goto(`${origin}/#/${view}`);
    await page.locator(`#view-${view}`).waitFor();
    if (view === 'overview')
      await page
        .locator('#cards .value', { hasText: /^[1-9]/ })
        .first()
        .waitFor();
    if (view === 'clients') await page.locator('#bans-rows tr').first().waitFor();
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.emulateMedia({ colorScheme });
      await page.evaluate('window.scrollTo(0, 0)');
      await page.evaluate('new Promise(requestAnimationFrame)');
      const { data } = await session.send('Page.captureScreenshot', { format: 'png' });
      const picture = Buffer.from(data, 'base64');
      t.ok(picture.length < 100_000, `${view}, ${colorScheme}: ${picture.length} bytes`);
      const { PICTURES } = process.env;
      if (PICTURES !== undefined) writeFileSync(join(PICTURES, `page-${view}-${colorScheme}.png`), picture);
    }
  }
  await session.detach();
  isFlooding = false;
  await flooding;
});

t.test('when the gateway goes away, the page says so, turns grey, and recovers', async (t) => {
  await page.goto(`${origin}/#/overview`);
  await page.getByText('Live', { exact: true }).waitFor();
  await closeAdmin();
  const banner = page.getByRole('alert');
  await banner.getByText(/The gateway is gone: .* Last seen \d\d:\d\d:\d\d/).waitFor();
  t.equal(await page.evaluate('document.body.classList.contains("gone")'), true);
  await checkPage(t, page, 'gone');
  await openAdmin();
  await page.getByText('Live', { exact: true }).waitFor();
  t.equal(await banner.isVisible(), false);
  t.equal(await page.evaluate('document.body.classList.contains("gone")'), false);
});

/** Number of elements on the page. */
const sizeOf = (page: Page): Promise<number> => page.evaluate("document.querySelectorAll('*').length");

t.test('a thousand policies and many clients: the page stays bounded', async (t: Test) => {
  const rows = Array.from(
    { length: 1000 },
    (_, i) => `name: policy-${i}, route: GET /p${i}, identifier: ip, limit: 1, window: 366d`,
  );
  const { page, origin, send } = await start(t, policyFile(...rows));
  await page.goto(`${origin}/#/policies`);
  await page.locator('#file-lines li').nth(1000).waitFor();
  const shown = page.locator('#policy-table tbody tr');
  await page.getByText('The filter finds 900 more policies.').waitFor();
  t.equal(await shown.count(), 100);
  await page.getByLabel('Filter').fill('policy-999');
  await shown.getByText('policy-999', { exact: true }).waitFor();
  t.equal(await shown.count(), 1);
  await page.goto(`${origin}/#/overview`);
  for (let i = 0; i < 600; i++) {
    const address = `10.0.${i >> 8}.${i & 255}`;
    await send(`GET /p${i}`, address);
    await send(`GET /p${i}`, address);
  }
  const shownGroups = page.locator('#newest-rows tr');
  // A click loads more, which takes a while. Then the button may be hidden. By its role it would not be found any more.
  const more = page.locator('#newest button', { hasText: 'Older refusals' });
  await until(async () => {
    if (await more.isVisible()) await more.dispatchEvent('click');
    return (await shownGroups.count()) >= 30;
  }, 'older refusals are shown');
  for (let i = 0; i < 20 && (await more.isVisible()); i++) await more.dispatchEvent('click');
  const groups = await shownGroups.count();
  t.ok(groups <= 200, `${groups} groups`);
  t.equal(await page.locator('#limited-rows tr').count(), 20);
  t.ok((await sizeOf(page)) < 12_000, `${await sizeOf(page)} elements`);
});

t.test('nine thousand bans: the newest, who made them, and Unban in the row', async (t: Test) => {
  const { page, origin, control } = await start(t, POLICIES);
  const dialog = page.getByRole('dialog');
  const total = page.locator('#bans-total');
  const rows = page.locator('#bans-rows tr');
  await page.goto(`${origin}/#/clients`);
  await total.getByText('nobody is banned').waitFor();
  await checkPage(t, page, 'no-bans');

  const client = (number: number) => identityOf(String(number).padStart(21, 'x').concat('A'));
  const week = 7 * 86_400_000;
  const ban = { bucket: 'login', after: 1, withinMs: week, forMs: week, growing: false };
  for (let i = 0; i < POLICY_ROWS_MAX; i++)
    await control.countDenials(client(i), ban, 1, 'policy login denied it');
  await control.ban(client(POLICY_ROWS_MAX), week, 'an attack');
  await total.getByText('the newest 25 of 9,001').waitFor();
  t.equal(await rows.count(), 25);
  const second = await rows.nth(1).locator('td').allTextContents();
  t.match(second, [/^xxxx/, 'policy login', /policy login denied it$/, /Unban/]);
  const first = rows.first();
  t.match(await first.locator('td').allTextContents(), [/^xxxx/, 'operator', /an attack$/, /Unban/]);
  await checkPage(t, page, 'bans');
  t.ok((await sizeOf(page)) < 1500, `${await sizeOf(page)} elements`);

  await first.getByRole('button', { name: /^Unban / }).click();
  await dialog.getByText('(an attack)').waitFor();
  await dialog.getByRole('button', { name: 'Unban', exact: true }).click();
  await page.getByText(/is let in again/).waitFor();
  await page.mouse.move(0, 0);
  await total.getByText('the newest 25 of 9,000').waitFor();
  await first.getByText('policy login', { exact: true }).waitFor();
});

t.test('the page logged no errors', async (t) => {
  t.strictSame(complaints, []);
});
