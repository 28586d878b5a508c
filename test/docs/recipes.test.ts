/** Every recipe is a whole file without warnings, which passes its own tests, one of each policy. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { warningsOf } from '#gateway/policy/file/warnings.ts';
import { placesIn } from '#gateway/policy/file/yaml-text.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { send } from '#test/gateway/proxy/exchange.ts';
import { BEHIND_PROXY, startTestGateway } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';
import { until } from '#test/support/until.ts';
import { readPage } from './pages.ts';

const page = readPage('docs/recipes.md');
const recipes = page.blocks.filter(({ language }) => language === 'yaml');
/** The file that the recipe for providers names. */
const networks = page.blocks.find(({ text }) => text.startsWith('# networks.txt'))?.text ?? '';

/** The recipe under the first heading that contains these words. */
function recipeFor(words: string): string {
  const lines = page.text.split('\n');
  const heading = lines.findIndex((line) => line.startsWith('## ') && line.includes(words)) + 1;
  const recipe = recipes.find(({ line }) => line > heading);
  if (heading === 0 || recipe === undefined) throw new Error(`no recipe for: ${words}`);
  return recipe.text;
}

t.test('the page lists its recipes, and each has one file', (t) => {
  const headings = [...page.prose.matchAll(/^## (.+)$/gm)].map(([, heading]) => heading);
  const listed = [...page.prose.matchAll(/^- \[(.+)\]\(#.+\)$/gm)].map(([, heading]) => heading);
  t.strictSame(listed, headings);
  t.equal(recipes.length, headings.length);
  t.end();
});

t.test('every recipe passes its tests, has one of each policy, and no warning', (t) => {
  for (const { text, line } of recipes) {
    const set = loadPolicies(text, 'recipe.yaml', () => networks);
    t.strictSame(runTests(set), [], `line ${line}`);
    t.strictSame(warningsOf(set, placesIn(text)), [], `line ${line}`);
    const tested = new Set(set.tests.flatMap(({ expect: { policies = [] } }) => policies ?? []));
    const whole = set.policies.filter(({ shareOf }) => shareOf === null);
    for (const { name } of whole) t.ok(tested.has(name), `line ${line}: ${name}`);
  }
  t.end();
});

// UPDATE=1 writes the files.
t.test('the templates of init are recipes', (t) => {
  const templates = {
    'json-api': 'an expensive route',
    login: 'password guessing',
    plans: 'paying customers',
    swarm: 'a swarm waits',
  };
  for (const [name, words] of Object.entries(templates)) {
    const file = join(projectRoot, 'examples', `${name}.yaml`);
    const head = `# yaml-language-server: $schema=../gateway/policies.schema.json\n#\n# docs/recipes.md explains this file.\n`;
    if (process.env.UPDATE === '1') writeFileSync(file, head + recipeFor(words));
    else t.equal(readFileSync(file, 'utf8'), head + recipeFor(words), `${name}: set UPDATE=1 to write it`);
  }
  t.end();
});

t.test('a client that does not stop is banned on all routes, and no other client is', async (t) => {
  const { port } = await startTestGateway(t, {
    policies: recipeFor('Ban clients'),
    env: BEHIND_PROXY,
    clock: () => Date.parse('2026-06-01T12:00:00Z'),
  });
  const ask = (path: string, from: string) => send(port, path, { headers: { 'x-forwarded-for': from } });
  for (let i = 0; i < 400; i++) await ask('/articles/1', '192.0.2.1');
  await until(async () => {
    const { status, headers } = await ask('/other', '192.0.2.1');
    return status === 429 && headers['retry-after'] === '3600';
  });
  t.equal((await ask('/other', '192.0.2.2')).status, 200);
});

t.test('behind Cloudflare and NGINX, visitors have own limits, and cannot choose an address', async (t) => {
  const [, trusted = ''] = /GATEWAY_TRUSTED_PROXIES=(\S+)/.exec(page.text) ?? [];
  const { port } = await startTestGateway(t, {
    policies: recipeFor('Behind a CDN'),
    env: { GATEWAY_TRUSTED_PROXIES: trusted },
    clock: () => Date.parse('2026-06-01T12:00:00Z'),
  });
  const left = async (visitor: string) => {
    // The last address is one of Cloudflare.
    const { headers } = await send(port, '/', { headers: { 'x-forwarded-for': `${visitor}, 173.245.48.1` } });
    return headers['x-ratelimit-remaining'];
  };
  t.equal(await left('192.0.2.1'), '299');
  t.equal(await left('192.0.2.2'), '299', 'another visitor');
  t.equal(await left('203.0.113.9, 192.0.2.1'), '298', 'the visitor wrote the first address');
});
