/** With several workers, one line of the log says that no policy matches, and only if no worker had a match. */
import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import type { MatchReport } from '#gateway/observe/unmatched.ts';
import { NothingMatched } from '#gateway/process/nothing-matched.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { childrenOf, environment } from '#test/support/gateway-process.ts';
import { LONG_POLICIES } from '#test/support/operator.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const report = (
  verdict: MatchReport['verdict'],
  paths: string[] = [],
  policyVersion = 'v1',
): MatchReport => ({
  policyVersion,
  verdict,
  paths,
  otherHosts: [],
  hasForeignPages: false,
});

/** Workers whose reports are set by the test. */
function decider(...workers: MatchReport[]) {
  const lines: (readonly string[])[] = [];
  let asked = 0;
  const decision = new NothingMatched({
    policyVersion: 'v1',
    async ask() {
      asked++;
      return workers;
    },
    onFound: (paths) => lines.push(paths),
  });
  const see = async (one: MatchReport): Promise<void> => {
    decision.see(one);
    await new Promise(setImmediate);
  };
  return { decision, workers, lines, see, asked: () => asked };
}

t.test('no line if one worker had a match, before or after the report of another', async (t) => {
  const before = decider(report('unmatched', ['/a']), report('open'));
  await before.see(report('matched'));
  await before.see(report('unmatched', ['/a']));
  t.strictSame([before.lines, before.asked()], [[], 0]);

  const after = decider(report('unmatched', ['/a']), report('matched'));
  await after.see(report('unmatched', ['/a']));
  t.strictSame([after.lines, after.asked()], [[], 1]);
  after.workers[1] = report('open');
  await after.see(report('unmatched', ['/a']));
  t.strictSame([after.lines, after.asked()], [[], 1], 'the match is not forgotten with its worker');
});

t.test('one line with the paths of all workers, and none for the rest of the time', async (t) => {
  const { lines, see, workers } = decider(report('unmatched', ['/a', '/b']), report('open', ['/b', '/c']));
  await see(report('open', ['/b', '/c']));
  t.strictSame(lines, []);
  await see(report('unmatched', ['/a', '/b']));
  t.strictSame(lines, [['/a', '/b', '/c']]);
  workers[1] = report('unmatched', ['/d']);
  await see(report('unmatched', ['/d']));
  t.equal(lines.length, 1);
});

t.test('decides again for another policy file, by the reports about this file only', async (t) => {
  const { decision, lines, see, workers } = decider(report('matched'), report('matched'));
  await see(report('matched'));
  decision.restart('v2');
  await see(report('matched'));
  workers.splice(0, 2, report('unmatched', ['/new'], 'v2'), report('matched', [], 'v1'));
  await see(report('unmatched', ['/new'], 'v2'));
  t.strictSame(lines, [['/new']]);
});

t.test('a worker that ended or began anew before it was asked again decides nothing', async (t) => {
  const { lines, see, workers } = decider(report('open'));
  await see(report('unmatched', ['/a']));
  t.strictSame(lines, []);
  workers[0] = report('unmatched', ['/b']);
  await see(report('unmatched', ['/b']));
  t.strictSame(lines, [['/b']]);
});

/** Sets the clock of a worker forward when it gets this signal. */
const AHEAD = `const real = performance.now.bind(performance);
let ahead = 0;
performance.now = () => real() + ahead;
process.on('SIGUSR2', () => {
  ahead += 61_000;
  process.stderr.write('set forward\\n');
});
`;

t.test('two workers: requests that match on one of them, then none that match', async (t) => {
  const [redis, upstream] = await Promise.all([startRedis(t), startUpstream(t)]);
  const folder = temporaryFolder(t);
  const [file, ahead] = [join(folder, 'policies.yaml'), join(folder, 'ahead.cjs')];
  writeFileSync(file, LONG_POLICIES);
  writeFileSync(ahead, AHEAD);
  const env = await environment({
    GATEWAY_UPSTREAM: upstream.origin,
    GATEWAY_POLICIES: file,
    GATEWAY_REDIS_URL: redis.url,
    GATEWAY_WORKERS: '2',
  });
  const gateway = start([`--require=${ahead}`, 'gateway/main.ts'], env);
  t.teardown(() => gateway.stop());
  await gateway.until(/Gateway ready/);

  /** The kernel distributes connections, so each request has one of its own. */
  const request = (path: string): Promise<void> =>
    new Promise((resolve, reject) => {
      get({ host: '127.0.0.1', port: env.GATEWAY_PORT, path, agent: false }, (reply) =>
        reply.resume().on('end', resolve),
      ).on('error', reject);
    });
  const paths = ['/a', '/b', '/c', '/d', '/e', '/f'];
  const unmatched = async (): Promise<void> => {
    for (let i = 0; i < 8; i++) for (const path of paths) await request(path);
  };
  const aMinuteLater = async (times: number): Promise<void> => {
    for (const pid of childrenOf(gateway.child.pid)) process.kill(pid, 'SIGUSR2');
    await gateway.until(new RegExp(`(set forward[\\s\\S]*){${2 * times}}`));
    await unmatched();
  };
  /** All workers report, and the supervisor decides. */
  const top = async () => (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/api/top`)).json();
  const lines = () => gateway.output().match(/^.*no policy has matched any request.*$/gm) ?? [];

  await request('/items');
  await unmatched();
  await aMinuteLater(1);
  await top();
  t.strictSame(lines(), []);

  writeFileSync(file, LONG_POLICIES.replaceAll('GET /', 'GET /never/'));
  await gateway.until(/(the edited policy file is in use[\s\S]*){2}/);
  await unmatched();
  await aMinuteLater(2);
  await until(() => lines().length > 0, 'the line', gateway);
  await top();
  t.equal(lines().length, 1);
  const [{ paths: named, file: where }] = lines().map((line) => JSON.parse(line));
  t.strictSame([where, named.toSorted()], [file, paths]);
});
