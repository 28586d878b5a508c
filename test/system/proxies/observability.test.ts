/** The page of metrics, alerts and dashboard is true: all that they name is in a real scrape. */
import { spawnSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { parse } from 'yaml';
import { compileDashboard } from '#test/docs/dashboard-types.ts';
import { codeIn, readPage, tableOf } from '#test/docs/pages.ts';
import { scrapedFamilies } from '#test/support/exposition.ts';
import { policyFile, startUpstream } from '#test/support/gateway.ts';
import { environment, eventually, launch } from '#test/support/gateway-process.ts';
import { projectRoot } from '#test/support/process.ts';
import { missingIn } from '#test/support/promql.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('docs/observability.md');
const RULES = 'examples/prometheus/floodgate.rules.yml';
const RULE_TESTS = 'examples/prometheus/floodgate.rules.test.yml';
const read = (file: string): string => readFileSync(join(projectRoot, file), 'utf8');

interface Rule {
  readonly alert: string;
  readonly expr: string;
  readonly labels: { readonly severity: string };
  readonly annotations: Readonly<Record<string, string>>;
}
const rules: readonly Rule[] = parse(read(RULES)).groups.flatMap(({ rules }: { rules: Rule[] }) => rules);

interface Panel {
  readonly title: string;
  readonly targets?: readonly { readonly expr: string; readonly legendFormat: string }[];
}
const dashboard: { readonly panels: readonly Panel[] } = JSON.parse(read('examples/grafana/floodgate.json'));
/** Without Grafana's variables. */
const targets = dashboard.panels.flatMap(({ title, targets = [] }) =>
  targets.map(({ expr, legendFormat }) => ({
    title,
    legendFormat,
    expr: expr.replaceAll('$__rate_interval', '5m').replaceAll(/\$\w+/g, '.+'),
  })),
);

function promtool(args: readonly string[], input = ''): { status: number | null; text: string } {
  const { status, stdout, stderr } = spawnSync('promtool', args, {
    cwd: projectRoot,
    input,
    encoding: 'utf8',
  });
  return { status, text: stdout + stderr };
}

/** @returns the metrics of a gateway with a store and workers, after some requests */
async function scrape(t: Test): Promise<string> {
  const redis = await startRedis(t);
  const upstream = await startUpstream(t);
  const file = join(temporaryFolder(t), 'policies.yaml');
  writeFileSync(
    file,
    `protect: on\n${policyFile(
      'name: one, route: GET /one, identifier: ip, limit: 1, window: 366d, ban: { after: 1, within: 1h, for: 1h }',
      'name: units, route: GET /units, identifier: ip, limit: 9, window: 366d, cost: { replyHeader: x-units, reserve: 2 }',
      'name: new, route: GET /new, identifier: ip, limit: 9, window: 366d, newcomers: { limit: 9, window: 366d }',
    )}`,
  );
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_POLICIES: file,
    GATEWAY_WORKERS: '2',
    GATEWAY_ACCESS_LOG: join(temporaryFolder(t), 'access.log'),
  });
  await launch(t, env);
  for (const path of ['/units', '/new', '/one', '/one', '/one'])
    await (await fetch(`http://127.0.0.1:${env.GATEWAY_PORT}${path}`)).text();
  return eventually(
    'units missing, a client banned and a newcomer seen',
    async () => (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/metrics`)).text(),
    (text) =>
      /^floodgate_policy_units_missing_total\{.*\} 1/m.test(text) &&
      /^floodgate_policy_bans_total\{.*mode="enforce"\} 1/m.test(text) &&
      /^floodgate_visitors_total\{.*client="newcomer"\} 1/m.test(text),
  );
}

t.test('metrics', async (t) => {
  const text = await scrape(t);
  const families = scrapedFamilies(text);

  const { status, text: said } = promtool(['check', 'metrics'], text);
  t.equal(status, 0, said);
  t.equal(said, '', 'promtool reports nothing');

  const shown = tableOf(page, 'Metric', 'Type').map(([name = '', type = '', labels = '']) => [
    codeIn(name),
    type,
    labels
      .split(', ')
      .filter((label) => label !== '')
      .map(codeIn),
  ]);
  const exposed = [...families].map(([name, { type, labels }]) => [
    name,
    type,
    [...labels.keys()].filter((label) => label !== 'le'),
  ]);
  const inOrder = (rows: readonly unknown[]): string[] => rows.map((row) => JSON.stringify(row)).sort();
  t.strictSame(inOrder(shown), inOrder(exposed), 'the page lists these metrics');

  t.ok(rules.length > 10);
  for (const { alert, expr } of rules) t.strictSame(missingIn(expr, families), [], alert);
  t.ok(targets.length > 30);
  for (const { title, expr, legendFormat } of targets) {
    t.strictSame(missingIn(expr, families), [], title);
    for (const [, label = ''] of legendFormat.matchAll(/\{\{(\w+)\}\}/g))
      t.match(expr, new RegExp(`\\bby \\([^)]*\\b${label}\\b`), `${title}: {{${label}}}`);
  }
  for (const { input_series: series } of parse(read(RULE_TESTS)).tests)
    for (const { series: name } of series as { series: string }[])
      t.strictSame(missingIn(name.replace(/job="\w+",?|instance="\w+",?/g, ''), families), [], name);
  t.strictSame(
    missingIn(
      'floodgate_nothing + floodgate_held{bond="waiting"} + sum by (kind) (floodgate_held)',
      families,
    ),
    ['floodgate_nothing', 'floodgate_held{bond}', 'by (kind)'],
    'missing names are found',
  );
});

t.test('alerts', async (t) => {
  const checked = promtool(['check', 'rules', RULES]);
  t.equal(checked.status, 0, checked.text);
  const config = promtool(['check', 'config', 'examples/prometheus/prometheus.yml']);
  t.equal(config.status, 0, config.text);

  const [command] = page.blocks.filter(({ text }) => text.startsWith('promtool'));
  const tested = promtool(command?.text.trim().split(' ').slice(1) ?? []);
  t.equal(tested.status, 0, tested.text);

  const shown = tableOf(page, 'Alert', 'Severity').map(([name = '', severity = '']) => [
    codeIn(name),
    severity,
  ]);
  t.strictSame(
    shown,
    rules.map(({ alert, labels }) => [alert, labels.severity]),
    'the page lists these alerts',
  );
  const tests = read(RULE_TESTS);
  for (const { alert, annotations } of rules) {
    t.ok(tests.includes(`alertname="${alert}"`), `${alert} has a test`);
    t.strictSame(Object.keys(annotations), ['summary', 'action'], alert);
  }
});

t.test('dashboard', async (t) => {
  const file = join(temporaryFolder(t), 'expressions.yml');
  const recorded = targets.map(({ expr }, i) => ({ record: `expression:${i}`, expr }));
  writeFileSync(file, JSON.stringify({ groups: [{ name: 'dashboard', rules: recorded }] }));
  const checked = promtool(['check', 'rules', file]);
  t.equal(checked.status, 0, `every expression is PromQL: ${checked.text}`);

  t.equal(compileDashboard(t, JSON.stringify(dashboard)), '', 'the dashboard fits the types of Grafana');
  const [stat] = dashboard.panels.filter(({ targets }) => targets !== undefined);
  const wrong = { ...dashboard, panels: [{ ...stat, type: 'timeseries' }] };
  t.match(compileDashboard(t, JSON.stringify(wrong)), /error TS/, 'a mistake is found');
});
