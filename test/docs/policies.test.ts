/** The pages about the policy file agree with the loader, the matcher and the check. */
import { execFile } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import type { LoggedDecision } from '#gateway/observe/log-line.ts';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { FILE_KEYS, policyFileSchema } from '#gateway/policy/keys/file-keys.ts';
import { IDENTIFIER_KEYS, identifierSchema } from '#gateway/policy/keys/identifier-keys.ts';
import type { AnyKey } from '#gateway/policy/keys/key.ts';
import { POLICY_KEYS, policySchema } from '#gateway/policy/keys/policy-keys.ts';
import { EXPECT_KEYS, TEST_KEYS, testSchema } from '#gateway/policy/keys/test-keys.ts';
import { createMatcher } from '#gateway/policy/match.ts';
import { readTarget } from '#gateway/policy/target.ts';
import { CODES, type ErrorCode } from '#gateway/refusals/codes.ts';
import { GROUP_REASONS, outcomeOf, REASONS } from '#gateway/refusals/reasons.ts';
import { recordOf } from '#gateway/reply/own-reply.ts';
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

function codesIn(cell: string): readonly string[] {
  return [...cell.matchAll(/`([^`]+)`/g)].map(([, code = '']) => code);
}

/** @param headers alternating names and values */
function recordText(headers: readonly string[]): string {
  return Object.entries(recordOf(headers))
    .map(([name, value]) => `${name}: ${value}`)
    .join();
}

/** Turns a block that is a list of policies into a file. */
function asFile(text: string): string {
  return text.startsWith('- ') ? identifiers + text.replace(/^/gm, '  ') : text;
}

t.test('every YAML block is valid and passes its tests, except the one that shows mistakes', async (t) => {
  for (const { file, blocks } of [page, detail]) {
    const yaml = blocks.filter(({ language }) => language === 'yaml');
    t.ok(yaml.length >= 1);
    for (const { text, line } of yaml) {
      if (text.startsWith('# broken.yaml')) t.throws(() => loadPolicies(asFile(text), 'broken.yaml'));
      else t.strictSame(runTests(loadPolicies(asFile(text), 'page.yaml', referenced)), [], `${file}:${line}`);
    }
  }
});

t.test('what the tables write for the lines of other products stands in the example', async (t) => {
  const settings = readPage('docs/configuration.md').text;
  const file = readFileSync(join(projectRoot, 'examples/other-products.yaml'), 'utf8');
  const sections = others.text.split(/^## /m).slice(1);
  t.equal(sections.length, 6);
  for (const section of sections) {
    const [product = ''] = section.split('\n');
    const rows = [...section.matchAll(/^\| .+ \| (.+) \|$/gm)].slice(1).map(([, right = '']) => right);
    t.ok(rows.length >= 8, `${product}: ${rows.length} lines`);
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

/** A row of the documentation. Values in braces are shown as code. */
function keyRow(name: string, key: AnyKey, isRequired: boolean): string {
  const { schema, default: usual, without = isRequired ? 'required' : 'none', more, see } = key;
  const shown = see === undefined ? `\`${name}\`` : `[\`${name}\`](${see})`;
  const value = schema.description.replace(/\{[^{}]*(?:\{[^{}]*\}[^{}]*)*\}/g, '`$&`');
  const text = more === undefined ? value : `${value}. ${more}`;
  return `| ${shown} | ${text} | ${usual === undefined ? without : `\`${usual}\``} |`;
}

t.test('the tables of keys have the rows of the program', async (t) => {
  const tables: [Readonly<Record<string, AnyKey>>, readonly string[]][] = [
    [FILE_KEYS, policyFileSchema.required],
    [IDENTIFIER_KEYS, identifierSchema.required],
    [POLICY_KEYS, policySchema.required],
    [TEST_KEYS, testSchema.required],
    [EXPECT_KEYS, []],
  ];
  const head = '| Key | Value | Default |\n|---|---|---|\n';
  const [before = '', ...parts] = detail.text.split(head);
  const wanted = parts.map((part, i) => {
    const [keys, required] = tables[i] ?? [];
    if (keys === undefined) return part;
    const rows = Object.entries(keys).map(([name, key]) =>
      keyRow(name, key, required?.includes(name) ?? false),
    );
    return `${rows.join('\n')}\n${part.replace(/^(?:\|.*\n)*/, '')}`;
  });
  const text = [before, ...wanted].join(head);
  t.equal(parts.length, tables.length);
  // `npm run policies:schema` writes the rows.
  if (process.env.UPDATE === '1') writeFileSync(join(projectRoot, detail.file), text);
  else t.equal(detail.text, text, 'run npm run policies:schema');
});

t.test('paths are read as the tables show', async (t) => {
  const match = createMatcher(
    loadPolicies(policyFile('name: all, route: "* *", identifier: ip, limit: 1, window: 1m'), 'all.yaml'),
  );
  for (const [sent = '', forwarded = '', path = ''] of tableOf(detail, 'Sent', 'Forwarded', 'Matched')) {
    const [matched] = codeIn(path).split('?');
    t.match(match('GET', codeIn(sent)), { ok: true, target: codeIn(forwarded), path: matched }, sent);
  }
  for (const [sent = '', others = ''] of tableOf(detail, 'Sent', 'Also read as')) {
    const found = match('GET', codeIn(sent));
    t.strictSame(new Set(found.ok ? found.paths.slice(1) : []), new Set(codesIn(others)), sent);
  }
  for (const [sent = '', why = ''] of tableOf(detail, 'Sent', 'Why')) {
    // Bytes such as %00 are written as they are sent.
    t.match(readTarget(codeIn(sent)), { ok: false }, `${sent}: ${why}`);
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

t.test('the tables of replies have the codes, statuses and fields of the program', async (t) => {
  const reasons: readonly { code: string; decision?: string }[] = [
    ...Object.values(REASONS),
    ...GROUP_REASONS,
  ];
  const withId = new Set(['gateway_forbidden']);
  for (const { code, decision } of reasons) if (decision !== undefined) withId.add(code);
  const rows = [...detail.prose.matchAll(/^\| .+ \| (\d{3}) \| `(\w+)` \| (.+) \|$/gm)];
  t.strictSame(new Set(rows.map(([, , code]) => code)), new Set(Object.keys(CODES)));
  for (const [, status = '', name = '', fields = ''] of rows) {
    const row = CODES[name as ErrorCode];
    t.equal(Number(status), row.status, name);
    const listed = codesIn(fields);
    const fixed = listed.filter((field) => field.includes(': ') && field !== 'Connection: close');
    t.strictSame(fixed.join(), recordText(row.headers), name);
    t.equal(listed.includes('x-gateway-decision'), withId.has(name), name);
  }
  for (const type of new Set(Object.values(CODES).map(({ type }) => type.replace(/^.*(?=#)/, ''))))
    t.ok(detail.prose.includes(`\`${type}\``), type);
});

t.test('the pages list how refusals are counted, logged and recorded', async (t) => {
  const rowWith = (file: string, start: string): readonly string[] =>
    codesIn(
      readPage(file)
        .text.split('\n')
        .find((line) => line.startsWith(start)) ?? '',
    );
  const kinds = rowWith('test/gateway/cli/json.md', '| `decision` | `deny`; ');
  const outcomes = rowWith('docs/observability.md', '| `floodgate_requests_total`');
  const logged = rowWith('docs/operating.md', '| `decision` |');
  const reasons: readonly { code: string; decision?: string; logged?: LoggedDecision }[] =
    Object.values(REASONS);
  for (const reason of reasons) {
    if (reason.decision !== undefined) t.ok(kinds.includes(reason.decision), reason.decision);
    t.ok(outcomes.includes(outcomeOf(reason)), outcomeOf(reason));
    if (reason.logged !== undefined) t.ok(logged.includes(reason.logged), reason.logged);
  }
});
