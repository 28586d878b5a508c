/** The page for those who run Formbricks: its table is the policy file's, its settings and spellings are the gateway's. */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { parse } from 'yaml';
import { limitTable } from '#api/limits/table.ts';
import { GATEWAY_VARIABLES, readConfig } from '#gateway/config.ts';
import { loadPolicies } from '#gateway/policy/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { projectRoot } from '#test/support/process.ts';
import { codeIn, readPage, tableOf } from './pages.ts';

const page = readPage('docs/in-front-of-formbricks.md');
const [compose, , ...more] = page.blocks;
const example = readFileSync(join(projectRoot, 'examples/formbricks.yaml'), 'utf8');
const set = loadPolicies(example, 'examples/formbricks.yaml');

t.test('the table is the policy file', async (t) => {
  const windows: Readonly<Record<number, string>> = { 60: 'a minute', 3600: 'an hour' };
  const who: Readonly<Record<string, string>> = { ip: 'client address', 'api-key': 'API key' };
  const own = set.policies.map(({ route, limit, windowSeconds, identifier }) =>
    [route.text, `${limit} ${windows[windowSeconds]}`, who[identifier.name]].join(' | '),
  );
  const shown = tableOf(page, 'Route', 'Limit', 'Per').map(([route = '', limit, per]) =>
    [codeIn(route), limit, per].join(' | '),
  );
  t.strictSame([...shown].sort(), [...own].sort());
  for (const { text } of set.exclude) {
    t.ok(page.prose.includes(`\`${text.replace(/ \*$/, '')}\``), `${text} is named as excluded`);
  }
});

t.test('the Compose file: variables of the gateway, the example as its policy file', async (t) => {
  t.strictSame(more, []);
  const { services } = parse(compose?.text ?? '');
  const { environment, command, volumes } = services.gateway;
  const known = new Set<string>(GATEWAY_VARIABLES.map(({ name }) => name));
  for (const name of Object.keys(environment)) t.ok(known.has(name), name);
  t.doesNotThrow(() => readConfig(environment));
  t.strictSame(volumes, ['./floodgate/examples/formbricks.yaml:/app/policies.yaml:ro']);
  const own = parse(readFileSync(join(projectRoot, 'docker-compose.yml'), 'utf8')).services.gateway;
  t.strictSame(command, own.command, 'started as our own Compose file starts it');
});

t.test('paths are answered as the table says', async (t) => {
  const match = createMatcher(set);
  for (const [sent = '', , answer = ''] of tableOf(page, 'Sent', 'Without the gateway')) {
    const matched = match('GET', codeIn(sent));
    if (answer === '400') t.match(matched, { ok: false }, sent);
    else t.match(matched, { ok: true, target: codeIn(answer), cover: Object }, sent);
  }
});

t.test('the limits that stay with the application are all named', async (t) => {
  const named = tableOf(page, 'Limit', 'Requests').flatMap(([cell = '']) =>
    [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
  );
  t.strictSame([...named].sort(), Object.keys(limitTable).sort());
});
