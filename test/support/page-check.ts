/** Checks that every page for people has to pass, in either program. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import type { Test } from 'tap';
import { projectRoot } from './process.ts';
import { until } from './until.ts';

const axe = readFileSync(join(projectRoot, 'node_modules/axe-core/axe.min.js'), 'utf8');
const views = [
  { width: 1280, height: 800, colorScheme: 'light' },
  { width: 1280, height: 800, colorScheme: 'dark' },
  { width: 360, height: 800, colorScheme: 'light' },
  { width: 360, height: 800, colorScheme: 'dark' },
] as const;

/** Tables that are wider than their place, and words of headings and buttons that are cut in two. */
const BROKEN = `[
  ...[...document.querySelectorAll('table')]
    .filter((table) => table.checkVisibility() && table.scrollWidth > table.parentElement.clientWidth)
    .map((table) => table.textContent),
  ...[...document.querySelectorAll('h1, h2, h3, thead th, label, button')]
    .flatMap((node) => [...node.childNodes])
    .filter((text) => text.nodeType === Node.TEXT_NODE && text.parentElement.checkVisibility())
    .flatMap((text) =>
      [...text.data.matchAll(/[\\w-]+/g)].filter(({ 0: word, index }) => {
        const range = document.createRange();
        range.setStart(text, index);
        range.setEnd(text, index + word.length);
        return new Set([...range.getClientRects()].map(({ top }) => top)).size > 1;
      }),
    )
    .map(([word]) => word),
]`;

interface Violation {
  readonly id: string;
  readonly nodes: readonly { readonly html: string; readonly failureSummary: string }[];
}

/**
 * Writes down what the page complains of on its console, and what it loads from elsewhere.
 *
 * @param isOurs whether a URL is one that the page may load
 */
export function watchPage(page: Page, complaints: string[], isOurs: (url: string) => boolean): Page {
  page.on('console', (message) => {
    // A refused form or token is reported like this, and is no mistake of the page.
    if (message.type() === 'error' && !message.text().startsWith('Failed to load resource'))
      complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('request', (request) => {
    if (!isOurs(request.url())) complaints.push(request.url());
  });
  return page;
}

/**
 * Nothing that axe objects to, nothing wider than the screen, and nothing cut: in light and dark, wide and narrow.
 *
 * @param name of the page as it is now; SCREENSHOTS=FOLDER keeps pictures under it
 */
export async function checkPage(t: Test, page: Page, name: string): Promise<void> {
  for (const { width, height, colorScheme } of views) {
    await page.setViewportSize({ width, height });
    await page.emulateMedia({ colorScheme });
    await page.evaluate(axe);
    const violations = await page.evaluate<readonly Violation[]>(
      'axe.run({ resultTypes: ["violations"] }).then(({ violations }) => violations)',
    );
    const where = `${name}, ${width} ${colorScheme}`;
    t.strictSame(
      violations.flatMap(({ id, nodes }) =>
        nodes.map(({ html, failureSummary }) => ({ id, html, failureSummary })),
      ),
      [],
      where,
    );
    const overflow = await page.evaluate(
      'document.documentElement.scrollWidth - document.documentElement.clientWidth',
    );
    t.equal(overflow, 0, `${where}: the page does not scroll sideways`);
    t.strictSame(await page.evaluate(BROKEN), [], `${where}: nothing is cut`);
    const { SCREENSHOTS } = process.env;
    if (SCREENSHOTS === undefined) continue;
    const path = join(SCREENSHOTS, `${name}-${width}-${colorScheme}.png`);
    // A dialog lies over what the screen shows, not over the whole page.
    await page.screenshot({ path, fullPage: !(await page.locator('dialog[open]').isVisible()) });
  }
}

/** Moves along the chart with the keys, from the newest bar back, until the figures of a bar match. */
export async function readChart(page: Page, wanted: RegExp): Promise<void> {
  const chart = page.getByRole('slider', { name: 'Figures of the chart by time' });
  await chart.focus();
  await page.keyboard.press('End');
  await until(async () => {
    if (wanted.test((await chart.getAttribute('aria-valuetext')) ?? '')) return true;
    const isFirst = (await chart.getAttribute('aria-valuenow')) === '1';
    await page.keyboard.press(isFirst ? 'End' : 'ArrowLeft');
    return false;
  }, `a bar of the chart has ${wanted}`);
  await page.keyboard.press('Escape');
}
