/** The page of a refusal in a real browser: it counts down, loads nothing, and runs only its own script. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const upstream = await startUpstream(t, (_, res) => {
  res.setHeader('content-type', 'text/html');
  res.end('<title>application</title><form method="post" action="/form"><button>Send</button></form>');
});
const folder = temporaryFolder(t);
const file = join(folder, 'policies.yaml');
const at = { now: 1_800_000_000_000 };

async function gateway(policies: string): Promise<string> {
  writeFileSync(file, policies);
  const { origin } = await startTestGateway(t, {
    upstream,
    clock: () => at.now,
    env: { GATEWAY_POLICIES: file },
  });
  return origin;
}

const POLICIES = `deny: [{ route: GET /closed, reason: "we move until Monday" }]
${policyFile(
  'name: minute, route: GET /minute, identifier: ip, limit: 1, window: 1m',
  'name: hour, route: GET /hour, identifier: ip, limit: 1, window: 1h',
  'name: form, route: POST /form, identifier: ip, limit: 1, window: 1m',
)}`;

const origin = await gateway(POLICIES);
const browser = await startBrowser(t);
const complaints: string[] = [];
const watched = (page: Page): Page => watchPage(page, complaints, (url) => url.startsWith(origin));

t.test('counts down, and then offers to try again', async (t) => {
  const page = watched(await browser.newPage());
  // Timers run, but the page's time is stopped.
  await page.clock.setFixedTime(at.now);
  await page.goto(`${origin}/minute`);
  t.equal(await page.title(), 'application');
  await page.reload();
  await page.getByRole('heading', { level: 1, name: 'Too many requests' }).waitFor();
  const timer = page.getByRole('timer');
  t.equal(await timer.textContent(), '60 seconds');
  t.equal(await page.locator('html').getAttribute('lang'), 'en');
  await checkPage(t, page, 'refusal');
  await page.clock.setFixedTime(at.now + 2000);
  await page.getByText('58 seconds').waitFor();
  await page.clock.setFixedTime(at.now + 59_001);
  await page.getByText('1 second', { exact: true }).waitFor();
  t.equal(await page.getByRole('button').count(), 0, 'no button is visible');
  await page.clock.setFixedTime(at.now + 60_000);
  await page.getByRole('status').getByText('You can try again now.').waitFor();
  t.equal(await timer.isVisible(), false);
  await checkPage(t, page, 'refusal-over');
  at.now += 60_000;
  await page.keyboard.press('Tab');
  await page.keyboard.press('Enter');
  await page.waitForFunction("document.title === 'application'");
});

t.test('a refused form, and a denied route', async (t) => {
  const page = watched(await browser.newPage());
  await page.goto(`${origin}/start`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.waitForURL(`${origin}/form`);
  await page.goto(`${origin}/start`);
  await page.getByRole('button', { name: 'Send' }).click();
  await page.getByRole('heading', { name: 'Too many requests' }).waitFor();
  await page.goto(`${origin}/closed`);
  await page.getByText('The operator has closed this route: we move until Monday').waitFor();
  t.equal(await page.getByRole('timer').count(), 0);
  await checkPage(t, page, 'refusal-closed');
});

t.test('shows the same without scripts', async (t) => {
  const page = await browser.newPage();
  const session = await page.context().newCDPSession(page);
  await session.send('Emulation.setScriptExecutionDisabled', { value: true });
  await page.goto(`${origin}/hour`);
  await page.goto(`${origin}/hour`);
  t.match(await page.getByRole('timer').textContent(), /^\d+ (?:second|minute)s?$/);
  t.equal(await page.getByRole('button').count(), 0, 'no button is shown without scripts');
});

t.test('a template: its own script runs, and no other', async (t) => {
  const html = `<!doctype html><html lang="en"><title>Mine</title>
<style>p { color: rgb(1, 2, 3); }</style>
<h1>One moment</h1><p style="margin: 3px">Wait <b id="seconds">{seconds}</b> s. {policy}, {decision}</p>
<script>document.getElementById('seconds').append(' and more');</script>
<img src="data:," alt="" onerror="document.title = 'evil'">
`;
  writeFileSync(join(folder, 'denied.html'), html);
  const mine = await gateway(`replies: { page: denied.html }\n${POLICIES}`);
  const page = await browser.newPage();
  await page.goto(`${mine}/minute`);
  await page.goto(`${mine}/minute`);
  await page.getByText('Wait 60 and more s. minute, ').waitFor();
  t.equal(await page.title(), 'Mine');
  t.equal(
    await page.evaluate("getComputedStyle(document.querySelector('p')).color"),
    'rgb(1, 2, 3)',
    'its style applies',
  );
});

t.test('loads only the pages, and no page violates its own policy', async (t) => {
  t.strictSame(complaints, []);
});
