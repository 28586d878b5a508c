/** With several workers, one line of the log says that no policy matches, and only if no worker had a match. */
import { writeFileSync } from 'node:fs';
import { get } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { startUpstream } from '#test/support/gateway.ts';
import { childrenOf, environment } from '#test/support/gateway-process.ts';
import { LONG_POLICIES } from '#test/support/operator.ts';
import { start } from '#test/support/process.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

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
  /** All workers report to the supervisor. */
  const top = async () => (await fetch(`http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/api/top`)).json();
  const lines = () => gateway.output().match(/^.*no policy has matched any request.*$/gm) ?? [];

  await request('/items');
  await unmatched();
  await top();
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
  t.equal(where, file);
  t.ok(named.length > 0 && named.every((path: string) => paths.includes(path)), String(named));
});
