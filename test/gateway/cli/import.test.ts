/** Tests `floodgate import`: it prints a policy file and reports everything that it cannot convert. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { floodgate } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const CONF = `limit_req_zone $binary_remote_addr zone=a:1m rate=10r/s;
limit_conn_zone $binary_remote_addr zone=b:1m;
server { limit_conn b 10; location /api/ { limit_req zone=a; } }
`;

t.test('stdout has a file that passes check, stderr lists what could not be converted', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'nginx.conf'), CONF);
  const { code, stdout, stderr } = await floodgate(['import', 'nginx.conf'], { cwd });
  t.equal(code, 0);
  t.match(stdout, /# nginx\.conf:3, limit_req zone=a in location \/api\//);
  t.match(stdout, /# - nginx\.conf:3, limit_conn b 10: /);
  t.equal(stderr, 'policies: 1; not carried over: 1, see the comments at its top\n');
  writeFileSync(join(cwd, 'policies.yaml'), stdout);
  t.match(await floodgate(['check'], { cwd }), { code: 0, stdout: /1 policies/, stderr: '' });
});

t.test('--json, from standard input', async (t) => {
  const { code, stdout } = await floodgate(['import', '-', '--json', '--from', 'nginx'], { input: CONF });
  t.equal(code, 0);
  t.match(JSON.parse(stdout), {
    from: 'nginx',
    file: '(standard input)',
    policies: [{ name: 'a-api', route: '* /api/*', identifier: 'ip', limit: 10, window: '1s', bucket: null }],
    unsupported: [{ line: 3, what: 'limit_conn b 10', reason: /GATEWAY_CLIENT_SHARE/ }],
    text: /^# Made of \(standard input\)/,
  });
});

t.test('1: nothing to convert, or a bad file; 2: unknown product; 3: no file', async (t) => {
  const nothing = await floodgate(['import', '-', '--from', 'nginx'], { input: 'server { listen 80; }' });
  t.match(nothing, { code: 1, stdout: '', stderr: /no limit that can be carried over/ });
  const odd = await floodgate(['import', '-'], { input: 'a: b' });
  t.match(odd, { code: 1, stderr: /\(standard input\) cannot be imported: it is none of Envoy Gateway/ });
  t.match(await floodgate(['import', '-', '--from', 'apache'], { input: '' }), {
    code: 2,
    stderr: /Choices/,
  });
  t.match(await floodgate(['import', 'none.conf']), {
    code: 3,
    stderr: /none\.conf cannot be read \(ENOENT\)/,
  });
});
