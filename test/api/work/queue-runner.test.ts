import { setImmediate } from 'node:timers/promises';
import t from 'tap';
import { startQueueRunner } from '#api/work/queue-runner.ts';

const HOUR = 3_600_000;

t.test('runs at once, once for each wake, and again while there is more work', async (t) => {
  let due = 3;
  let passes = 0;
  const runner = startQueueRunner({
    pollMs: HOUR,
    stopTimeoutMs: HOUR,
    onError: (error) => t.fail(String(error)),
    async pass() {
      passes += 1;
      due = Math.max(due - 1, 0);
      return due > 0;
    },
  });
  t.teardown(() => runner.stop());
  await runner.idle();
  t.equal(due, 0);
  const before = passes;
  runner.wake();
  runner.wake();
  await runner.idle();
  t.ok(passes > before);
});

t.test('polling finds work without a wake', async (t) => {
  const { promise, resolve } = Promise.withResolvers<void>();
  let passes = 0;
  const runner = startQueueRunner({
    pollMs: 1,
    stopTimeoutMs: HOUR,
    onError: (error) => t.fail(String(error)),
    async pass() {
      passes += 1;
      if (passes === 3) resolve();
      return false;
    },
  });
  t.teardown(() => runner.stop());
  await promise;
});

t.test('reports a failure and tries again at the next poll', async (t) => {
  const errors: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const runner = startQueueRunner({
    pollMs: 1,
    stopTimeoutMs: HOUR,
    onError: (error) => errors.push(error),
    async pass() {
      if (errors.length < 2) throw new Error('no');
      resolve();
      return false;
    },
  });
  t.teardown(() => runner.stop());
  await promise;
  t.equal(errors.length, 2);
});

t.test('a queue with running work is not idle, and stopping waits a bounded time for it', async (t) => {
  const work = Promise.withResolvers<void>();
  let isStarted = false;
  const options = {
    pollMs: HOUR,
    onError: (error: unknown) => t.fail(String(error)),
    async pass({ track }: { track(work: Promise<void>): void }) {
      if (!isStarted) track(work.promise);
      isStarted = true;
      return false;
    },
  };
  const patient = startQueueRunner({ ...options, stopTimeoutMs: HOUR });
  let isIdle = false;
  const idle = patient.idle().then(() => {
    isIdle = true;
  });
  for (let i = 0; i < 20; i += 1) await setImmediate();
  t.notOk(isIdle);
  let isStopped = false;
  const stopped = patient.stop().then(() => {
    isStopped = true;
  });
  for (let i = 0; i < 20; i += 1) await setImmediate();
  t.notOk(isStopped, 'stopping waits for running work');
  work.resolve();
  await Promise.all([idle, stopped]);

  isStarted = false;
  const hasty = startQueueRunner({
    ...options,
    stopTimeoutMs: 1,
    pass: async ({ track }) => {
      track(new Promise(() => {}));
      return false;
    },
  });
  await setImmediate();
  await hasty.stop();
  t.pass('stopping does not wait for work that hangs');
});
