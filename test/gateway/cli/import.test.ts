/** Tests `floodgate import`: it prints a policy file and reports everything that it cannot convert. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgate } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const CONFIG = `domain: edge
descriptors:
  - key: remote_address
    rate_limit: { unit: second, requests_per_unit: 10 }
  - { key: generic_key, value: default, rate_limit: { unit: second, requests_per_unit: 9 } }
`;

t.test('stdout has a file that passes check, stderr counts what was lost', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'ratelimit.yaml'), CONFIG);
  const { code, stdout, stderr } = await floodgate(['import', 'ratelimit.yaml'], { cwd });
  t.equal(code, 0);
  t.match(stdout, /^# 2 limits found, 1 carried over, 1 lost\.\n/);
  t.match(stdout, /# ratelimit\.yaml:3, remote_address/);
  t.match(stdout, /# - ratelimit\.yaml:5, generic_key=default: /);
  t.equal(stderr, '2 limits found, 1 carried over, 1 lost; the comments of the file say why\n');
  writeFileSync(join(cwd, 'policies.yaml'), stdout);
  t.match(await floodgate(['check'], { cwd }), { code: 0, stdout: /1 policies/, stderr: '' });
});

t.test('--json, from standard input', async (t) => {
  const { code, stdout } = await floodgate(['import', '-', '--json'], { input: CONFIG });
  t.equal(code, 0);
  t.match(JSON.parse(stdout), {
    from: 'ratelimit',
    file: '(standard input)',
    limits: { found: 2, carriedOver: 1, lost: 1 },
    policies: [{ name: 'all', route: '* *', identifier: 'ip', limit: 10, window: '1s', bucket: null }],
    unsupported: [{ line: 5, what: 'generic_key=default' }],
    text: /^# 2 limits found/,
  });
});

t.test('1: nothing to convert, or a bad file; 2: unknown product; 3: no file', async (t) => {
  const nothing = await floodgate(['import', '-'], { input: 'descriptors: []' });
  t.match(nothing, { code: 1, stdout: '', stderr: /no limit that can be carried over/ });
  const odd = await floodgate(['import', '-'], { input: 'a: b' });
  t.match(odd, { code: 1, stderr: /\(standard input\) cannot be imported: it is none of Envoy Gateway/ });
  t.match(await floodgate(['import', '-', '--from', 'apache'], { input: '' }), {
    code: 2,
    stderr: /Choices/,
  });
  t.match(await floodgate(['import', '-', '--from=nginx'], { input: '' }), {
    code: 2,
    stderr: /coming-from-another-product/,
  });
  t.match(await floodgate(['import', 'none.conf']), {
    code: 3,
    stderr: /none\.conf cannot be read \(ENOENT\)/,
  });
});
