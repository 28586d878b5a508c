/** The page of a gateway that shares its store, at first with nobody and then with another gateway. */
import t from 'tap';
import { trafficOf } from '#test/support/admin-traffic.ts';
import { startBrowser } from '#test/support/browser.ts';
import { startOperator } from '#test/support/operator.ts';
import { checkPage, watchPage } from '#test/support/page-check.ts';
import { startRedis } from '#test/support/redis.ts';

const redis = await startRedis(t);
const env = { GATEWAY_REDIS_URL: redis.url };
const { admin, send } = await startOperator(t, env);
const browser = await startBrowser(t);
const complaints: string[] = [];
const page = watchPage(await browser.newPage(), complaints, (url) => url.startsWith(admin));
const status = (text: string | RegExp) => page.locator('#status', { hasText: text }).waitFor();

/** Returns when the gateway began to count, from the first event of its stream, in the zone of the browser. */
async function startedAt(): Promise<string> {
  const { since } = await trafficOf(admin);
  return page.evaluate((at) => new Date(at).toLocaleTimeString('en-GB').slice(0, 5), since);
}

t.test('one gateway: the table begins with its own start', async () => {
  await page.goto(admin);
  await send(9);
  await status(/Store available, .* 1 process ·/);
  await page.locator('#limited-since', { hasText: `since ${await startedAt()}` }).waitFor();
});

t.test('a flood: the table of refusals counts all of them', async () => {
  await send(60);
  await page.locator('#newest-rows .number', { hasText: /^66$/ }).waitFor();
});

t.test('after a ban, both tables offer to lift it, also on a page that is opened later', async (t) => {
  const buttons = (table: string) => page.locator(`#${table}-rows .actions button`);
  await buttons('newest').getByText('Ban', { exact: true }).click();
  await page.getByRole('dialog').getByRole('button', { name: 'Ban', exact: true }).click();
  await page.getByText(/is banned for 1 h\./).waitFor();
  for (const table of ['newest', 'limited'])
    await buttons(table).getByText('Unban', { exact: true }).waitFor();
  await checkPage(t, page, 'banned-in-both');
  await page.reload();
  for (const table of ['newest', 'limited'])
    await buttons(table).getByText('Unban', { exact: true }).waitFor();
});

t.test('the status line tells how many gateways share the store', async () => {
  await startOperator(t, env);
  await status(/Store available, .* 1 process of 2 that share the store/);
});

t.test('the page logged no errors', async (t) => {
  t.strictSame(complaints, []);
});
