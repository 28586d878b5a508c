/**
 * Tests `floodgate prove`: it counts the requests that a real gateway admits, and fails if they differ from the limit.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startTestAdmin } from '#test/support/admin.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway, startUpstream } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ROWS = [
  'name: wide, route: "GET,POST /a/*", identifier: ip, limit: 40, window: 1h',
  'name: narrow, route: "GET /a/{id}/b", identifier: ip, limit: 7, window: 1h',
  'name: keys, route: GET /keys, identifier: api-key, limit: 12, window: 1h',
  'name: login, route: POST /login, identifier: ip, limit: 3, window: 1h',
  'name: watched, route: GET /w, identifier: ip, limit: 3, window: 1h, mode: shadow',
  'name: shared, route: GET /s, identifier: ip, limit: 3, window: 1h',
  'name: sharing, route: GET /t, identifier: ip, limit: 3, window: 1h, bucket: shared',
  'name: sliding, route: GET /sliding, identifier: ip, limit: 6, window: 1h, algorithm: sliding-window',
  'name: bucket, route: GET /bucket, identifier: ip, limit: 60, window: 1h, algorithm: token-bucket, burst: 8',
  'name: fast, route: GET /fast, identifier: ip, limit: 600, window: 1s, algorithm: token-bucket, burst: 8',
  'name: flight, route: GET /flight, identifier: ip, concurrency: 9',
  'name: both, route: GET /both, identifier: ip, limits: [{ limit: 30, window: 1h }, { concurrency: 4 }]',
  'name: large, route: GET /l, identifier: ip, limit: 10001, window: 1h',
  'name: whole, route: GET /whole, identifier: everyone, limit: 3, window: 1h',
  'name: account, route: GET /account, identifier: { body: email }, limit: 3, window: 1h',
];
/** The clock is in the middle of a window of an hour, so no window ends during a test. */
const NOON = Date.parse('2026-11-20T12:10:00Z');

t.test('each row admits its limit; rows that are not tested are named', async (t) => {
  const cwd = temporaryFolder(t);
  const policies = policyFile(...ROWS);
  writeFileSync(join(cwd, 'p.yaml'), policies);
  const upstream = await startUpstream(t);
  const env = { GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32' };
  const clock = () => NOON;
  const options = { upstream: upstream.origin, policies, clock, wallClock: clock };
  const { origin } = await startTestGateway(t, { ...options, env });
  const prove = async (gateway: string, ...more: string[]) => {
    const args = ['prove', '--public', gateway, '--file', 'p.yaml', '--yes', '--json', ...more];
    const { code, stdout, stderr } = await floodgateCommand(args, { cwd });
    return { code, stderr, ...JSON.parse(stdout) };
  };
  const row = (policy: string, limit: number) => ({
    policy,
    sent: limit + 5,
    admitted: limit,
    limit,
    exact: true,
  });
  const rows = [
    row('wide', 40),
    row('narrow', 7),
    row('keys', 12),
    row('shared', 3),
    row('sliding', 6),
    { ...row('bucket', 8), sent: 14, refilled: 1 },
    row('flight', 9),
    row('both.1h', 30),
    row('both.concurrency', 4),
  ];
  const safe = await prove(origin);
  t.match(safe, {
    code: 0,
    rows,
    skipped: [
      { policy: 'login', reason: /--all-methods/ },
      { policy: 'watched', reason: /shadow/ },
      { policy: 'sharing', reason: /counter of shared/ },
      { policy: 'fast', reason: /gets back 600 a second/ },
      { policy: 'large', reason: /--limit-max/ },
      { policy: 'whole', reason: /everyone together/ },
      { policy: 'account', reason: /field of the body/ },
    ],
  });
  const all = await prove(origin, '--all-methods');
  t.match(all, { code: 0, rows: [...rows.slice(0, 3), row('login', 3), ...rows.slice(3)] }, 'a second run');

  // This gateway has another limit than the file that is proved.
  const other = await startTestGateway(t, {
    ...options,
    env,
    policies: policies.replace('limit: 7', 'limit: 9'),
  });
  const wrong = await prove(other.origin);
  t.equal(wrong.code, 1);
  t.match(wrong.rows[1], { policy: 'narrow', admitted: 1, exact: false, note: /another limit for it, 9/ });
  t.match(wrong.rows[0], { exact: true });

  // This gateway does not trust the machine, so it counts the machine's own address, which was used before.
  const distrusting = await startTestGateway(t, { ...options, env: {} });
  const first = await prove(distrusting.origin, '--wait', '0');
  t.match(first.rows[0], { policy: 'wide', admitted: 40, exact: true });
  t.match(
    first.rows[1],
    { policy: 'narrow', exact: false, note: /counted before/ },
    'the policy wide has used up the limit',
  );
  const used = await prove(distrusting.origin, '--wait', '0');
  t.equal(used.code, 1);
  t.match(used.rows[0], { exact: false, note: /counted before/ });
});

t.test('asks for confirmation first, and names the gateway that does not answer', async (t) => {
  const cwd = temporaryFolder(t);
  writeFileSync(join(cwd, 'p.yaml'), policyFile(ROWS[1] ?? ''));
  const run = (...args: string[]) => floodgateCommand(['prove', '--file', 'p.yaml', ...args], { cwd });
  t.match(await run(), { code: 2, stderr: /sends about 7 real requests .*; add --yes/ });
  t.match(await run('--public', 'http://127.0.0.1:1', '--yes'), { code: 3, stderr: /no gateway answers/ });
  t.match(await run('--public', 'nowhere', '--yes'), { code: 2, stderr: /is not a URL/ });
  t.match(await run('--gateway', 'http://127.0.0.1:1', '--yes'), {
    code: 2,
    stderr: /requests of clients: write --public URL/,
  });
  const upstream = await startUpstream(t);
  const operated = await startTestGateway(t, { upstream: upstream.origin });
  for (const token of [null, 'secret']) {
    const admin = await startTestAdmin(t, operated, { token });
    t.match(await run('--public', admin, '--yes'), { code: 2, stderr: /is the admin listener/ });
  }
  t.match(await run('-H', 'nothing', '--yes'), { code: 2, stderr: /is no header/ });
});
