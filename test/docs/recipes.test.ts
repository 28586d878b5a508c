/** Every recipe is a whole file without warnings, which passes its own tests, one of each policy. */
import { readdirSync, readFileSync } from 'node:fs';
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
const sections = page.text.split(/^## /m).slice(1);

/** The file that a section links to: its path below `examples/`. */
const linkIn = (section: string): string => /\(\.\.\/examples\/([\w/-]+\.yaml)\)\n/.exec(section)?.[1] ?? '';
const read = (file: string): string => readFileSync(join(projectRoot, 'examples', file), 'utf8');
/** The recipe under the first heading that contains these words. */
const recipeFor = (words: string): string =>
  read(linkIn(sections.find((section) => section.split('\n')[0]?.includes(words)) ?? ''));

t.test('each recipe has its file, which has the lines that the page shows', (t) => {
  const folder = readdirSync(join(projectRoot, 'examples/recipes')).filter((file) => file.endsWith('.yaml'));
  const linked = sections.map(linkIn);
  t.equal(new Set(linked).size, sections.length);
  t.strictSame(
    linked.filter((file) => file.startsWith('recipes/')).sort(),
    folder.map((file) => `recipes/${file}`).sort(),
  );
  for (const section of sections) {
    const line = section.split('\n').find((line) => linkIn(`${line}\n`) !== '') ?? '';
    const text = read(linkIn(section));
    const shown = [...(line.split(': [`')[0] ?? '').matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
    t.ok(shown.length > 0, line);
    for (const code of shown) t.ok(text.includes(code), `${linkIn(section)}: ${code}`);
  }
  t.end();
});

t.test('every recipe passes its tests, has one of each policy, and no warning', (t) => {
  for (const file of sections.map(linkIn)) {
    const text = read(file);
    const set = loadPolicies(text, file, (name) => read(`recipes/${name}`));
    t.strictSame(runTests(set), [], file);
    t.strictSame(warningsOf(set, placesIn(text)), [], file);
    const tested = new Set(set.tests.flatMap(({ expect: { policies = [] } }) => policies ?? []));
    const whole = set.policies.filter(({ shareOf }) => shareOf === null);
    for (const { name } of whole) t.ok(tested.has(name), `${file}: ${name}`);
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
