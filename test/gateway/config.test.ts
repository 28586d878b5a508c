import t from 'tap';
import { readConfig } from '#gateway/config.ts';

const REDIS = { GATEWAY_REDIS_URL: 'redis://127.0.0.1:6379' };

t.test('GATEWAY_WORKERS=auto takes the cores, and one process without a store to share', async (t) => {
  const workers = (env: Record<string, string>, cores: number) => {
    const { config } = readConfig({ GATEWAY_WORKERS: 'auto', ...env }, cores);
    return [config.workers, config.warnings.length];
  };
  t.strictSame(workers(REDIS, 6), [6, 0]);
  t.strictSame(workers(REDIS, 1), [1, 0]);
  t.strictSame(workers(REDIS, 200), [64, 0], 'bounded');
  t.strictSame(workers({}, 6), [1, 1], 'and says so');
  t.strictSame(workers({}, 1), [1, 0], 'there is nothing to say of one core');
});

t.test('a number of workers is taken as it is', async (t) => {
  t.equal(readConfig({ GATEWAY_WORKERS: '3', ...REDIS }, 1).config.workers, 3);
  t.throws(() => readConfig({ GATEWAY_WORKERS: '3' }, 8), /needs GATEWAY_REDIS_URL/);
  t.throws(() => readConfig({ GATEWAY_WORKERS: 'Auto' }, 8), /"Auto" is not a whole number from 1 to 64/);
});

t.test('GATEWAY_REUSE_PORT is off unless asked for', async (t) => {
  t.equal(readConfig({}).config.reusePort, false);
  t.equal(readConfig({ GATEWAY_REUSE_PORT: '1' }).config.reusePort, true);
});
