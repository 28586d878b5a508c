/** The page of a gateway without Redis, in front of an application that is not there: it claims nothing that it cannot know. */
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { startOperator } from '#test/support/operator.ts';
import { freePort } from '#test/support/ports.ts';

/** Runs in the page. Failures count as recent for some seconds. */
function twoSecondsWithoutFailures(): Promise<void> {
  return new Promise((resolve) => {
    const live = new EventSource('/api/live');
    let seen = 0;
    live.addEventListener('second', (event) => {
      const { rates } = JSON.parse('data' in event ? String(event.data) : '');
      if (rates === null || rates['floodgate_replies_total none'] > 0) return;
      seen++;
      if (seen < 2) return;
      live.close();
      resolve();
    });
  });
}

t.test('what nobody has seen is not shown', async (t) => {
  const { admin, send } = await startOperator(t, {
    GATEWAY_UPSTREAM: `http://127.0.0.1:${await freePort()}`,
  });
  const startedAt = Date.now();
  const page = await (await startBrowser(t)).newPage();
  await page.goto(admin);
  const status = page.locator('#status');
  await status.getByText('memory of this process').waitFor();
  t.match(await status.textContent(), /No reply of the application in the last minute/);
  const scopes = await page.locator('.scope').allTextContents();
  t.ok(scopes.length > 3);
  t.strictSame([...new Set(scopes)], ['this gateway'], 'other gateways tell nothing without a store');
  const since = (await page.locator('#limited-since').textContent()) ?? '';
  const [, hours = 0, minutes = 0] = (/^nobody since (\d\d):(\d\d)$/.exec(since) ?? []).map(Number);
  const at = new Date(startedAt);
  at.setHours(hours, minutes);
  t.ok(startedAt - at.getTime() < 120_000, `${since}: nothing is known from before the start`);
  t.strictSame(await send(1), [502]);
  await status
    .getByText(/The application does not answer since .*, failures since the start: unavailable 1/)
    .waitFor();
  t.strictSame(await send(3), [502, 502, 429]);
  await page.locator('#limited-rows tr', { hasText: '0 passed since' }).waitFor();
  await page.evaluate(twoSecondsWithoutFailures);
  t.match(await status.textContent(), /The application does not answer/, 'it still does not');
});
