/** Tests what a process does on the first and on further signals. */
import t from 'tap';
import { stopper } from '#gateway/process/stop.ts';

const HOUR = 3_600_000;

interface Begun {
  readonly stop: (signal: string) => void;
  readonly told: readonly string[];
  /** Ends the drain, or lets it fail. */
  readonly drained: PromiseWithResolvers<void>;
  readonly exited: Promise<number>;
}

function begin(delayMs: number): Begun {
  const told: string[] = [];
  const drained = Promise.withResolvers<void>();
  const exit = Promise.withResolvers<number>();
  const stop = stopper({
    stop: () => {
      told.push('drain');
      return drained.promise;
    },
    log: {
      info: () => undefined,
      error: (error) => void told.push(error.message),
    },
    delayMs,
    onDelay: () => void told.push('delay'),
    exit: (code) => {
      told.push(`exit ${code}`);
      exit.resolve(code);
    },
  });
  stop('SIGTERM');
  return { stop, told, drained, exited: exit.promise };
}

t.test('without a delay, the first signal drains, and the process ends when that is done', async (t) => {
  const { told, drained, exited } = begin(0);
  t.strictSame(told, ['drain']);
  drained.resolve();
  t.equal(await exited, 0);
});

t.test('a signal during the delay drains at once', async (t) => {
  const { stop, told, drained, exited } = begin(HOUR);
  t.strictSame(told, ['delay']);
  stop('SIGTERM');
  t.strictSame(told, ['delay', 'drain']);
  drained.resolve();
  t.equal(await exited, 0);
});

t.test('the delay ends by itself', async (t) => {
  const { told, drained, exited } = begin(1);
  drained.resolve();
  t.equal(await exited, 0);
  t.strictSame(told, ['delay', 'drain', 'exit 0']);
});

t.test('a signal while it drains ends the process', async (t) => {
  const { stop, told } = begin(0);
  stop('SIGINT');
  t.strictSame(told, ['drain', 'exit 1']);
});

t.test('a drain that fails is logged, and ends the process with 1', async (t) => {
  const { told, drained, exited } = begin(0);
  drained.reject(new Error('the store is away'));
  t.equal(await exited, 1);
  t.strictSame(told, ['drain', 'the store is away', 'exit 1']);
});
