import t from 'tap';
import { every } from '#api/work/every.ts';

t.test(
  'runs at once and then regularly, also after an error, never twice at once, until it is stopped',
  async (t) => {
    let running = 0;
    let runs = 0;
    const errors: unknown[] = [];
    const { promise, resolve } = Promise.withResolvers<void>();
    // The job's own timer keeps no process alive.
    const alive = setInterval(() => undefined, 1_000);
    t.teardown(() => clearInterval(alive));
    const job = every(
      1,
      async ({ isStopping }) => {
        running += 1;
        t.equal(running, 1);
        t.notOk(isStopping());
        runs += 1;
        await new Promise((done) => setTimeout(done, 3));
        running -= 1;
        if (runs === 1) throw new Error('no');
        if (runs === 3) resolve();
      },
      (error) => errors.push(error),
    );
    t.equal(runs, 1, 'the first run begins at once');
    await promise;
    await job.stop();
    t.equal(running, 0, 'stopping waits for the run');
    t.match(errors, [{ message: 'no' }]);
  },
);
