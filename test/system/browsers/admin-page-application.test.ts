/**
 * The page of a gateway without Redis whose application fails: errors and requests without an answer have a colour of
 * their own, and the page claims nothing that it cannot know.
 */
import { createServer } from 'node:http';
import type { Page } from 'playwright-core';
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { startGatewayProcess } from '#test/support/gateway-process.ts';
import { listen } from '#test/support/listen.ts';
import { checkPage, readChart, watchPage } from '#test/support/page-check.ts';
import { freePort } from '#test/support/ports.ts';

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies:
  - { name: items, route: "GET /items", identifier: ip, limit: 2, window: 366d }
`;
const upstreamPort = await freePort();
const { origin, admin } = await startGatewayProcess(
  t,
  { GATEWAY_UPSTREAM: `http://127.0.0.1:${upstreamPort}` },
  POLICIES,
);
const browser = await startBrowser(t);
const complaints: string[] = [];
const page: Page = watchPage(await browser.newPage(), complaints, (url) => url.startsWith(admin));

async function send(path: string, times: number): Promise<void> {
  for (let i = 0; i < times; i++) await (await fetch(origin + path)).arrayBuffer();
}
const legend = (name: string, text: string) => page.locator(`#legend-${name}`, { hasText: text }).waitFor();

t.test('an outage has a colour, a reason, and its requests did not pass', async (t) => {
  await page.goto(admin);
  await page.getByText('Live', { exact: true }).waitFor();
  for (const kind of ['failed', 'unanswered'])
    t.equal(await page.locator(`#legend-${kind}`).isVisible(), false, 'no entry without a failure');
  const status = page.locator('#status');
  await status.getByText('memory of this process').waitFor();
  t.match(await status.textContent(), /No reply of the application in the last minute/);
  const scopes = await page.locator('.scope').allTextContents();
  t.ok(scopes.length > 3);
  t.strictSame([...new Set(scopes)], ['this gateway'], 'other gateways tell nothing without a store');
  const since = (await page.locator('#limited-since').textContent()) ?? '';
  t.match(since, /^nobody since \d\d:\d\d$/, 'nothing is known from before the start');
  await send('/open', 3);
  await legend('unanswered', 'application did not answer 3');
  await legend('passed', 'passed 0');
  await page
    .locator('#status.bad', { hasText: /The application does not answer since .*nothing listens there/ })
    .waitFor();
  await page.locator('path.unanswered[d^=M]').waitFor({ state: 'attached' });
  await checkPage(t, page, 'application-away');
  await readChart(page, /passed 0, .*application did not answer 3, .*refused 0, /);
});

t.test('the application answers 5xx: the outage is over, and the colour stays', async (t) => {
  const server = createServer((req, res) => {
    res.statusCode = req.url === '/broken' ? 503 : 200;
    res.end();
  });
  await listen(t, server, upstreamPort);
  await send('/broken', 4);
  await send('/items', 5);
  await legend('failed', 'application failed 4');
  await legend('unanswered', 'application did not answer 3');
  await legend('passed', 'passed 2');
  await legend('refused', 'refused 3');
  await page.locator('#status', { hasText: 'Application answers' }).waitFor();
  const colours = await page.evaluate<readonly string[]>(
    "['passed', 'failed', 'unanswered', 'refused'].map((kind) => getComputedStyle(document.querySelector('path.' + kind)).fill)",
  );
  t.equal(new Set(colours).size, 4, `each has a colour of its own: ${colours.join(' ')}`);
  await checkPage(t, page, 'application-fails');
});

t.test('the page logged no errors', async (t) => {
  t.strictSame(complaints, []);
});
