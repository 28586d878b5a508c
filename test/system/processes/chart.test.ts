/** The chart of several processes agrees with their access log, also after one of them has died. */
import { join } from 'node:path';
import t from 'tap';
import { trafficOf } from '#test/support/admin-traffic.ts';
import { childrenOf } from '#test/support/gateway-process.ts';
import { jsonLines } from '#test/support/json.ts';
import { startOperator } from '#test/support/operator.ts';
import { startRedis } from '#test/support/redis.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const OUTCOMES = { allowed: 'allow', denied: 'deny', uncovered: 'uncovered' };

t.test('sums are those of the access log', async (t) => {
  const redis = await startRedis(t);
  const file = join(temporaryFolder(t), 'access.log');
  const env = { GATEWAY_REDIS_URL: redis.url, GATEWAY_WORKERS: '2', GATEWAY_ACCESS_LOG: file };
  const { admin, send, process: gateway } = await startOperator(t, env);
  const shown = async (): Promise<number[]> => {
    const { series } = await trafficOf(admin);
    return Object.keys(OUTCOMES).map((outcome) =>
      (series[`floodgate_requests_total ${outcome}`] ?? []).reduce((all, one) => all + one, 0),
    );
  };
  const logged = (): number[] => {
    const lines = jsonLines(file);
    return Object.values(OUTCOMES).map((one) => lines.filter(({ decision }) => decision === one).length);
  };
  const agree = async (expected: readonly number[]): Promise<void> => {
    await until(async () => String(await shown()) === String(expected), `the chart shows ${expected}`);
    await until(() => String(logged()) === String(expected), `the log has ${expected}`);
  };
  await Promise.all([send(40), send(40), send(30, '/open')]);
  await agree([3, 77, 30]);

  const [worker = 0] = childrenOf(gateway.child.pid);
  process.kill(worker, 'SIGKILL');
  await until(async () => {
    const text = await (await fetch(`${admin}/metrics`)).text();
    return text.includes('floodgate_worker_restarts_total 1\n') && text.includes('floodgate_workers 2\n');
  });
  t.strictSame(await shown(), [3, 77, 30], 'the counts of the process that has ended stay');
  await Promise.all([send(20), send(20, '/open')]);
  await agree([3, 97, 50]);
});
