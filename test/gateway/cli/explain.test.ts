/** Tests `floodgate explain`: it shows the decision of the live code, and a reason for every policy. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { floodgateCommand } from '#test/support/cli.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const FILE = `version: 1
identifiers:
  ip: { source: client-address }
  api-key: { source: [{ header: x-api-key }] }
exclude:
  - GET /a/health
policies:
  - { name: all, route: "GET /a/*", identifier: ip, limit: 10, window: 1m }
  - { name: keys, route: "GET /a/{id}", identifier: api-key, limit: 5, window: 1h }
  - { name: post, route: "POST /a/{id}", identifier: ip, limit: 5, window: 1h }
  - { name: deep, route: "GET /a/{id}/b", identifier: ip, limit: 5, window: 1h }
  - { name: other, route: "GET /b", identifier: ip, limit: 5, window: 1h, mode: shadow }
`;

/** Returns a function that runs the command for this policy file, with `--json`. */
function explainer(t: Test, file: string) {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'p.yaml'), file);
  return async (...args: string[]) => {
    const all = ['explain', '--file', 'p.yaml', '--json', ...args];
    const { code, stdout } = await floodgateCommand(all, { cwd });
    return { code, ...JSON.parse(stdout) };
  };
}

t.test('says whether a policy can read the field of the body that it counts', async (t) => {
  const row = '{ name: account, route: POST /a/login, identifier: { body: email }, limit: 3, window: 1h }';
  const ofFile = explainer(t, `${FILE}  - ${row}\n`);
  const explain = async (...more: string[]) => {
    const explained = await ofFile('POST /a/login', ...more);
    return { ...explained, account: explained.policies.at(-1)?.reason };
  };
  const counted = { code: 0, decision: 'allow', account: 'route matches, its body.email is counted' };
  t.match(await explain('-d', 'email=ada%40example.org'), counted);
  t.match(await explain('--data', '{"email":"ada@example.org"}'), counted);
  const absent = 'the request presents no body.email in a JSON or form body of at most 8 KiB';
  t.match(await explain(), { code: 0, decision: 'allow', account: absent });
  t.match(await explain('-d', 'email=a', '-H', 'Content-Type: text/plain'), { account: absent });
  t.match(await explain('-d', '{"email":"a","email":"b"}'), {
    code: 1,
    decision: 'malformed',
    reason: /two different/,
  });
});

t.test('says how long a retry can be delayed, and shows the exact time', async (t) => {
  const file = FILE.replace('limit: 10, window: 1m', 'limit: 10, window: 1m, retryJitter: 10s');
  const { policies } = await explainer(t, file)('GET /a/1');
  t.match(policies[0]?.reason, /^route matches, .*Retry-After has 0 to 10 s more, at random$/);
});

t.test('says that a policy marks', async (t) => {
  const { policies } = await explainer(t, FILE.replace('mode: shadow', 'mode: mark'))('GET /b');
  t.match(policies.at(-1)?.reason, /^route matches, .*mark: it never denies, and marks$/);
});

t.test('each policy says whether it applies, and why', async (t) => {
  const explain = explainer(t, FILE);
  const plain = await explain('GET /a/1?x=2');
  t.match(plain, { code: 0, decision: 'allow', path: '/a/1', status: null });
  t.match(plain.headers, { 'x-ratelimit-limit': '10', 'x-ratelimit-remaining': '9' });
  t.strictSame(
    plain.policies.map(({ name, line, matched, reason }: Record<string, unknown>) => [
      name,
      line,
      matched,
      reason,
    ]),
    [
      ['all', 8, true, 'route matches, the client address is counted'],
      ['keys', 9, false, 'the request presents no api-key'],
      ['post', 10, false, 'the method is GET, the route has POST'],
      ['deep', 11, false, 'the path is not /a/{id}/b'],
      ['other', 12, false, 'the path is not /b'],
    ],
  );
  t.match(plain.policies[0], { bucket: 'all', limit: 10, windowSeconds: 60, used: 0, remaining: 10 });
  t.match(plain.policies[0].identity, /^[\w-]{22}$/);

  const keyed = await explain('GET /a/1', '-H', 'x-api-key: k');
  t.match(keyed.policies[1], { matched: true, reason: /its address is counted too/, used: 0, remaining: 5 });
  t.not(keyed.policies[1].identity, keyed.policies[0].identity);

  t.match(await explain('GET /a/health'), {
    code: 0,
    decision: 'uncovered',
    reason: /exclude has "GET \/a\/health"/,
  });
  t.match(await explain('GET /nothing'), { code: 0, decision: 'uncovered' });
  t.match(await explain('GET /a%00b'), {
    code: 1,
    decision: 'malformed',
    status: 400,
    reason: /encoded control character/,
  });
});

t.test('shows the readings of a path that servers read in several ways', async (t) => {
  const explain = explainer(t, FILE);
  t.strictSame((await explain('GET /a/1/')).readings, ['/a/1']);
  const several = await explain('GET /a%2F1');
  t.strictSame([several.path, several.readings], ['/a%2F1', ['/a%2F1', '/a/1']]);
  t.match(several.policies[0], { name: 'all', matched: true });
  t.strictSame((await explain('GET /a%00b')).readings, []);
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'p.yaml'), FILE);
  const { stdout } = await floodgateCommand(['explain', '--file', 'p.yaml', 'GET /a%2F1'], { cwd });
  t.match(
    stdout,
    /^allow \/a%2F1\nServers read this path in several ways, and each of them is matched:\n {2}\/a\/1\n/,
  );
});

t.test('names the override or the list entry that applies', async (t) => {
  const file = FILE.replace(
    'exclude:',
    'plan: { header: x-plan }\nallow: [{ address: 10.0.0.1 }]\ndeny: [{ address: 10.0.0.2, status: 403 }, { route: GET /closed/* }]\nexclude:',
  );
  const row = 'limit: 10, window: 1m';
  const ofFile = explainer(t, file.replace(row, `${row}, overrides: [{ for: { plan: gold }, limit: 20 }]`));
  const explain = (...args: string[]) => ofFile('GET /a/1', ...args);
  const gold = await explain('--plan', 'gold');
  t.match(gold.policies[0], {
    limit: 20,
    remaining: 20,
    reason: /an override makes its limit 20 instead of 10/,
  });
  t.equal(gold.headers['x-ratelimit-limit'], '20');
  const stranger = await explain('-H', 'x-plan: gold');
  t.match(stranger.policies[0], { limit: 10, reason: 'route matches, the client address is counted' });
  t.match(await explain('--from', '10.0.0.1'), {
    code: 0,
    decision: 'uncovered',
    reason: 'allow has 10.0.0.1 (line 6): no policy applies',
  });
  t.match(await explain('--from', '10.0.0.2'), {
    code: 1,
    decision: 'deny',
    status: 403,
    reason: 'deny has 10.0.0.2 (line 7): no policy applies',
  });
  t.match(await ofFile('HEAD /closed/1'), {
    decision: 'deny',
    path: '/closed/1',
    status: 403,
    reason: 'deny has GET /closed/* (line 7): no policy applies',
  });
});

t.test('prints a table for people', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'p.yaml'), FILE);
  const { code, stdout } = await floodgateCommand(['explain', 'GET /a/1', '--file', 'p.yaml'], { cwd });
  t.equal(code, 0);
  t.match(stdout, /^allow \/a\/1$/m);
  t.match(stdout, /^keys +9 +the request presents no api-key$/m);
  t.notMatch(stdout, '\u001b');
});

t.test('wrong arguments', async (t) => {
  t.match(await floodgateCommand(['explain', 'a', '--file', 'policies.yaml']), {
    code: 2,
    stderr: /METHOD PATH/,
  });
  const wrong = [
    ['--from', 'nowhere', /is not an address/],
    ['-H', 'novalue', /is no header/],
  ] as const;
  for (const [option, value, message] of wrong) {
    const result = await floodgateCommand(['explain', 'GET /', option, value, '--file', 'policies.yaml']);
    t.match(result, { code: 2, stderr: message });
  }
});
