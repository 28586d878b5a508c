/** The HTML report: one self-contained file, on wide and narrow screens, which shows everything in a log as text. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import t from 'tap';
import { startBrowser } from '#test/support/browser.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const POLICIES = `version: 1
identifiers: { ip: { source: client-address } }
policies:
  - { name: everything-under-the-sun-and-a-name-as-long-as-can-be, route: "* /*", identifier: ip, limit: 3, window: 1m }
  - { name: tried, route: "* /*", identifier: ip, limit: 2, window: 1m, mode: shadow }
`;
const EVIL = '<script>document.title="evil"</script><img src=x onerror="document.title=1">';

function line(second: number): string {
  const time = new Date(Date.UTC(2026, 10, 22, 8, 0, second)).toISOString().slice(11, 19);
  return `192.0.2.${second % 3} - - [22/Nov/2026:${time} +0000] "GET /${second} HTTP/1.1" 200 2`;
}

t.test('the report shows its numbers, and loads nothing', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, '<b>&"policies.yaml'), POLICIES);
  const lines = Array.from({ length: 600 }, (_, i) => line(i));
  writeFileSync(join(cwd, 'access.log'), [...lines.slice(0, 9), EVIL, ...lines.slice(9)].join('\n'));
  const { code, stdout } = await floodgateCommand(
    ['replay', 'access.log', '--file', '<b>&"policies.yaml', '--report', 'out.html', '--json'],
    { cwd },
  );
  t.equal(code, 0);
  const { allowed, denied } = JSON.parse(stdout);
  const file = join(cwd, 'out.html');
  const text = readFileSync(file, 'utf8');
  t.notMatch(text, /<script|<img|<b>|https?:|url\(|@import/);
  t.match(text, '&lt;script&gt;');

  const browser = await startBrowser(t);
  const page = await browser.newPage();
  for (const width of [1280, 360]) {
    for (const colorScheme of ['light', 'dark'] as const) {
      await page.setViewportSize({ width, height: 800 });
      await page.emulateMedia({ colorScheme });
      await page.goto(pathToFileURL(file).href);
      t.equal(await page.title(), 'Replay of <b>&"policies.yaml');
      const seen = {
        width: Number(await page.evaluate('document.documentElement.scrollWidth')),
        bars: await page.locator('svg.bars rect').count(),
        background: await page.evaluate('getComputedStyle(document.body).backgroundColor'),
        figures: await page.locator('.cards').textContent(),
      };
      t.ok(seen.width <= width, `the report fits into ${width} pixels`);
      t.ok(seen.bars > 20);
      t.match(seen.figures ?? '', `${allowed.toLocaleString('en')}allowed`);
      t.match(seen.figures ?? '', `${denied.toLocaleString('en')}denied`);
      t.equal(seen.background, colorScheme === 'dark' ? 'rgb(20, 24, 29)' : 'rgb(255, 255, 255)');
    }
  }
});

t.test('exit 3: the report cannot be written', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'policies.yaml'), POLICIES);
  writeFileSync(join(cwd, 'access.log'), line(1));
  const result = await floodgateCommand(['replay', 'access.log', '--report', 'none/out.html'], { cwd });
  t.match(result, { code: 3, stderr: /none\/out\.html cannot be written \(ENOENT\)/ });
});
