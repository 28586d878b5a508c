/** The two pages about the policy file agree with the loader, the matcher and the check. */
import { execFile } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/load.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { policyFileSchema } from '#gateway/policy/schema.ts';
import { canonicalTarget } from '#gateway/policy/target.ts';
import { ERRORS } from '#gateway/reply/errors.ts';
import { runTests } from '#gateway/workbench/rehearsal/policy-tests.ts';
import { policyFile } from '#test/support/gateway.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { keySetText, newSigner } from '#test/support/tokens.ts';
import { codeIn, readPage, tableOf } from './pages.ts';

const run = promisify(execFile);
const page = readPage('docs/policies.md');
const detail = readPage('docs/policies-in-detail.md');
const others = readPage('docs/coming-from-another-product.md');
const keySet = keySetText(await newSigner('EdDSA', 'key'));
const html = detail.blocks.find(({ language }) => language === 'html')?.text ?? '';
/** The files that the blocks name. */
const referenced = (name: string): string => (name.endsWith('.html') ? html : keySet);
const identifiers =
  'version: 1\nidentifiers:\n  ip: { source: client-address }\n  api-key: { source: [{ header: x-api-key }] }\npolicies:\n';

/** Turns a block that is a list of policies into a file. */
function asFile(text: string): string {
  return text.startsWith('- ') ? identifiers + text.replace(/^/gm, '  ') : text;
}

t.test('every YAML block is valid and passes its tests, except the one that shows mistakes', async (t) => {
  for (const { file, blocks } of [page, detail, others]) {
    const yaml = blocks.filter(({ language }) => language === 'yaml');
    t.ok(yaml.length >= 3);
    for (const { text, line } of yaml) {
      if (text.startsWith('# broken.yaml')) t.throws(() => loadPolicies(asFile(text), 'broken.yaml'));
      else t.strictSame(runTests(loadPolicies(asFile(text), 'page.yaml', referenced)), [], `${file}:${line}`);
    }
  }
});

t.test('what the tables write for the lines of other products stands in a file below them', async (t) => {
  const settings = readPage('docs/configuration.md').text;
  const sections = others.text.split(/^## /m).slice(1);
  t.equal(sections.length, 5);
  for (const section of sections) {
    const [product = ''] = section.split('\n');
    const file = /```yaml\n([\s\S]*?)```/.exec(section)?.[1] ?? '';
    const rows = [...section.matchAll(/^\| .+ \| (.+) \|$/gm)].slice(1).map(([, right = '']) => right);
    t.ok(rows.length >= 10, `${product}: ${rows.length} lines`);
    for (const [, code = ''] of rows.join('\n').matchAll(/`([^`]+)`/g)) {
      if (/^[A-Z_]+$/.test(code)) t.ok(settings.includes(`\`${code}\``), `${product}: ${code}`);
      else if (/[:{]/.test(code)) t.ok(file.includes(code), `${product}: ${code}`);
    }
  }
});

t.test('check prints the output that the page shows for the broken file', async (t) => {
  const broken = page.blocks.find(({ text }) => text.startsWith('# broken.yaml'));
  const shown = page.blocks.find(({ text }) => text.startsWith('broken.yaml:'));
  t.ok(broken && shown);
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'broken.yaml'), broken?.text ?? '');
  const checking = run(
    process.execPath,
    [join(projectRoot, 'gateway/cli/floodgate.mjs'), 'check', 'broken.yaml'],
    {
      cwd: folder,
    },
  );
  await t.rejects(checking, { code: 1, stderr: shown?.text });
});

t.test('every key of the schema is described', async (t) => {
  const { identifiers: named, policies } = policyFileSchema.properties;
  const [identifier] = Object.values(named.patternProperties);
  const tables = [
    [Object.keys(policyFileSchema.properties), 0],
    [Object.keys(identifier?.properties ?? {}), 1],
    [Object.keys(policies.items.properties), 2],
  ] as const;
  const rows = [...detail.text.matchAll(/^\| Key \| Value \|.*\n\|[-|]+\n((?:\|.*\n)+)/gm)].map(
    ([, text = '']) => [...text.matchAll(/^\| `(\w+)`/gm)].map(([, key]) => key),
  );
  for (const [keys, at] of tables) t.strictSame([...(rows[at] ?? [])].sort(), [...keys].sort());
});

t.test('paths are read as the tables show', async (t) => {
  const match = createMatcher(
    loadPolicies(policyFile('name: all, route: "* *", identifier: ip, limit: 1, window: 1m'), 'all.yaml'),
  );
  for (const [sent = '', forwarded = ''] of tableOf(detail, 'Sent', 'Matched and forwarded')) {
    t.match(match('GET', codeIn(sent)), { ok: true, target: codeIn(forwarded) }, sent);
  }
  for (const [sent = '', why = ''] of tableOf(detail, 'Sent', 'Why')) {
    // Bytes such as %00 are written as they are sent.
    t.match(canonicalTarget(codeIn(sent)), { ok: false }, `${sent}: ${why}`);
  }
});

t.test('routes match as the pages show', async (t) => {
  const covers = (route: string, method: string, target: string): boolean => {
    const row = `name: one, route: "${route}", identifier: ip, limit: 1, window: 1m`;
    const matched = createMatcher(loadPolicies(policyFile(row), 'one.yaml'))(method, target);
    return matched.ok && matched.cover !== null;
  };
  for (const path of ['/items', '/items/1', '/items/1/parts'])
    t.ok(covers('GET /items/*', 'GET', path), path);
  t.notOk(covers('GET /items/{id}', 'GET', '/items/1/parts'), '* matches one segment');
  t.ok(covers('GET /files/{name*}', 'GET', '/files/a/b'), '{name*} matches the rest');
  t.notOk(covers('GET /files/{name*}', 'GET', '/files'), '{name*} needs a segment');
  t.ok(covers('GET /a', 'HEAD', '/a'), 'GET covers HEAD');
  t.notOk(covers('GET /a', 'GET', '/A'), 'upper and lower case differ');
  t.ok(covers('GET /@me', 'GET', '/%40me'), 'an escape is the same character');
  t.ok(covers('GET /%3Ame', 'GET', '/:me'), 'a colon can be escaped');
  t.ok(covers('GET /api/me', 'GET', '/api;v=1/me'), 'segment parameters are ignored');
});

t.test('every code of a gateway reply is listed', async (t) => {
  for (const code of Object.keys(ERRORS)) t.ok(detail.prose.includes(`\`${code}\``), code);
});

t.test('every message of the last table comes from the loader', async (t) => {
  const bad = {
    'unknown key …; did you mean …?': 'nam: a, name: a, route: GET /a, identifier: ip, limit: 1, window: 1m',
    'the route … has no {…}': 'name: a, route: GET /a, identifier: path.b, limit: 1, window: 1m',
    'unknown identifier …': 'name: a, route: GET /a, identifier: who, limit: 1, window: 1m',
    'unreachable: exclude removes …': 'name: a, route: OPTIONS /a, identifier: ip, limit: 1, window: 1m',
    'path … has an empty segment': 'name: a, route: GET /a/, identifier: ip, limit: 1, window: 1m',
    'segment ":id" begins with a colon': "name: a, route: 'GET /:id', identifier: ip, limit: 1, window: 1m",
    'segment … can match no request': 'name: a, route: GET /a%2Fb, identifier: ip, limit: 1, window: 1m',
    'not valid YAML: …': 'name: [a',
  };
  const row = 'name: a, route: GET /a, identifier: ip, limit: 1, window: 1m';
  const files: Readonly<Record<string, string>> = {
    ...Object.fromEntries(Object.entries(bad).map(([message, text]) => [message, policyFile(text)])),
    'the name … is already used in line …': policyFile(row, row.replace('/a', '/b')),
    'bucket … is shared with …, which has a different limit': policyFile(
      `${row}, bucket: x`,
      `${row.replace('name: a', 'name: b').replace('limit: 1', 'limit: 2')}, bucket: x`,
    ),
  };
  const messages = tableOf(detail, 'Message', 'Fix').map(([cell = '']) => codeIn(cell));
  t.strictSame([...messages].sort(), Object.keys(files).sort());
  for (const message of messages) {
    const pattern = message
      .split('…')
      .map((part) => part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&'))
      .join('[^]*');
    t.throws(() => loadPolicies(files[message] ?? '', 'bad.yaml'), { message: new RegExp(pattern) }, message);
  }
});
