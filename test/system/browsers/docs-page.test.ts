/**
 * The page of the API's description, in a real browser behind the gateway: readable, and loading nothing from
 * elsewhere.
 */
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { startStack } from '#test/support/stack.ts';

const stack = await startStack(t);
const browser = await startBrowser(t);

t.test('the page shows the operations, loads nothing from elsewhere, and obeys its own policy', async (t) => {
  const page = await browser.newPage();
  await page.setViewportSize({ width: 1400, height: 1000 });
  const asked: string[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => asked.push(request.url()));
  page.on('console', (message) => {
    // Browsers request an icon from every site; this one has none.
    if (message.type() === 'error' && !message.location().url.endsWith('/favicon.ico'))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));

  await page.goto(`${stack.origin}/api/docs`);
  await page.getByRole('heading', { name: 'Floodgate API' }).first().waitFor();
  await page.getByText('Workspace state').first().waitFor();
  await page.getByText('Surveys', { exact: true }).first().click();
  await page.getByText('Create a survey').first().waitFor();
  const text = await page.locator('body').textContent();
  for (const words of ['Surveys', 'Responses (client)', 'Workspace state', 'Webhooks', 'Files']) {
    t.match(text, words);
  }
  t.strictSame(
    asked.filter((url) => !url.startsWith(stack.origin) && !/^(data|blob):/.test(url)),
    [],
    'every request goes to the service',
  );
  t.strictSame(complaints, []);
  const { SCREENSHOT } = process.env;
  if (SCREENSHOT !== undefined) await page.screenshot({ path: SCREENSHOT });
});
