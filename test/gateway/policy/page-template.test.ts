/** The template of the page for refused requests. Its mistakes are in named-files.md. */
import { hash } from 'node:crypto';
import t from 'tap';
import { loadPolicies } from '#gateway/policy/file/load.ts';
import { fill } from '#gateway/policy/page-template.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';

const FILE = `version: 1
replies: { page: denied.html }
identifiers:
  ip: { source: client-address }
policies:
  - { name: a, route: GET /a, identifier: ip, limit: 5, window: 1m }
`;
const load = (page: string): PolicySet => loadPolicies(FILE, 'p.yaml', () => page);
const VALUES = { seconds: '7', policy: 'a', decision: 'abc' };

t.test('fills in placeholders, and keeps everything else', async (t) => {
  const text = '{decision}<p title="{policy}">{seconds} {seconds}s {Seconds} {{policy}} { policy } {x}</p>';
  const { page } = load(text);
  if (page === null) return t.fail('no page');
  t.equal(fill(page, VALUES), 'abc<p title="a">7 7s {Seconds} {a} { policy } {x}</p>');
});

t.test('escapes every value as text', async (t) => {
  const { page } = load('<a title="{policy}" id=\'{policy}\'>{policy}</a>');
  if (page === null) return t.fail('no page');
  const html = fill(page, { ...VALUES, policy: `"'><script>&{seconds}</script>` });
  const value = '&#34;&#39;&#62;&#60;script&#62;&#38;{seconds}&#60;/script&#62;';
  t.equal(html, `<a title="${value}" id='${value}'>${value}</a>`);
});

t.test('only the scripts of the template may run', async (t) => {
  const page = load(
    '<SCRIPT type="module">\r\na()\r\n</SCRIPT>{seconds}<script></script><style>b{}</style>',
  ).page;
  const source = (text: string) => `'sha256-${hash('sha256', text, 'base64')}'`;
  const policy = page?.contentSecurityPolicy ?? '';
  // A browser reads CRLF as LF before it compares the hash.
  t.match(policy, `script-src ${source('\na()\n')} ${source('')};`);
  t.match(policy, "default-src 'none'; ");
  t.match(load('{seconds}').page?.contentSecurityPolicy ?? '', "script-src 'none';");
  t.notMatch(policy, /script-src[^;]*unsafe/);
});

t.test('a page that cannot be read', async (t) => {
  const absent = () => {
    throw Object.assign(new Error('no such file'), { code: 'ENOENT' });
  };
  t.throws(() => loadPolicies(FILE, 'p.yaml', absent), {
    message:
      /^p\.yaml:2:18: denied\.html cannot be read \(ENOENT\); put the file into the folder of the policy file/,
  });
  const elsewhere = FILE.replace('denied.html', '../denied.html');
  t.throws(() => loadPolicies(elsewhere, 'p.yaml', () => '{seconds}'), {
    message: /page is "\.\.\/denied\.html"/,
  });
});
