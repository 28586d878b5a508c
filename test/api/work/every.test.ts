import t from 'tap';
import { every } from '#api/work/every.ts';

t.test('runs at once and then regularly, never twice at once, and not after it is stopped', async (t) => {
  let running = 0;
  let runs = 0;
  const { promise, resolve } = Promise.withResolvers<void>();
  // The job's own timer keeps no process alive.
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const job = every(
    1,
    async () => {
      running += 1;
      t.equal(running, 1);
      runs += 1;
      await new Promise((done) => setTimeout(done, 3));
      running -= 1;
      if (runs === 3) resolve();
    },
    (error) => t.fail(String(error)),
  );
  t.equal(runs, 1, 'the first run begins at once');
  await promise;
  await job.stop();
  t.equal(running, 0, 'stopping waits for the run');
});

t.test('reports a failed run, and runs again', async (t) => {
  const alive = setInterval(() => undefined, 1_000);
  t.teardown(() => clearInterval(alive));
  const errors: unknown[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  let runs = 0;
  const job = every(
    1,
    async ({ isStopping }) => {
      runs += 1;
      if (runs === 1) throw new Error('no');
      t.notOk(isStopping());
      resolve();
    },
    (error) => errors.push(error),
  );
  await promise;
  await job.stop();
  t.match(errors, [{ message: 'no' }]);
});
