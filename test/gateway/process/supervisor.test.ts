/** Tests the supervisor with workers that misbehave on purpose. They are programs of a few lines. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { exposition, sum } from '#gateway/observe/metrics/exposition.ts';
import { Supervisor } from '#gateway/process/supervisor.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const READY = `process.send({ type: 'ready', port: Number(process.env.GATEWAY_PORT), policies: 1 });`;
/** Stays, and gives signs of life. */
const STAY = `setInterval(() => process.connected && process.send({ type: 'applied', id: 0 }), 100);`;
/** Reports a counter of five and a gauge of three. */
const COUNTS = `process.on('message', ({ id }) => process.send({ type: 'state', id, storeAvailable: true, families: [
  { name: 'c', help: '', type: 'counter', aggregator: 'sum', values: [{ labels: {}, value: 5 }] },
  { name: 'g', help: '', type: 'gauge', aggregator: 'sum', values: [{ labels: {}, value: 3 }] },
] }));`;
/**
 * Numbers the workers of this test, from 1. Workers start at the same time, so a number is a file that only one of them
 * can create.
 */
const NUMBER = `const { writeFileSync } = require('node:fs');
const file = __filename + '.number';
let number = 0;
const claim = () => {
  number += 1;
  try {
    writeFileSync(file + number, '', { flag: 'wx' });
    return true;
  } catch (error) {
    if (error.code === 'EEXIST') return false;
    throw error;
  }
};
while (!claim());`;

async function supervise(t: Test, program: string, workers = 1, onLine?: () => void) {
  const folder = temporaryFolder(t);
  const main = join(folder, 'worker.cjs');
  writeFileSync(main, program);
  const log: string[] = [];
  const port = await freePort();
  const clock = () => performance.now();
  const supervisor = new Supervisor({
    main,
    addresses: null,
    execArgv: [],
    env: process.env,
    workers,
    host: '127.0.0.1',
    port,
    reusePort: false,
    clock,
    drainTimeoutMs: 0,
    log: pino(
      { base: null },
      {
        write(line: string) {
          log.push(JSON.parse(line).msg);
          onLine?.();
        },
      },
    ),
  });
  t.teardown(() => supervisor.close());
  return { supervisor, log, port, main };
}

const eventually = (what: string, holds: () => Promise<boolean> | boolean): Promise<void> =>
  until(holds, what);

t.test('a worker that closes its channel is left out, and the supervisor stays ready', async (t) => {
  const { supervisor } = await supervise(t, `${READY}${STAY} setTimeout(() => process.disconnect(), 1);`);
  await supervisor.start();
  for (let i = 0; i < 10; i++) {
    t.match(await sum(await supervisor.families()), [{ name: 'floodgate_workers' }, {}]);
    await delay(10);
  }
  t.equal(supervisor.ready(), true);
});

t.test('a change of a ban is applied by every worker that answers', async (t) => {
  const program = (answer: string) =>
    `${NUMBER}${READY} process.on('message', ({ id, row }) => {
      writeFileSync(file + number, row.name);
      ${answer}
    });`;
  const row = { kind: 'ban', name: 'a', endsAt: 1, note: null, version: 1 } as const;
  const whole = await supervise(t, program(`process.send({ type: 'applied', id });`), 2);
  await whole.supervisor.start();
  await whole.supervisor.applyChange(row);
  const applied = [1, 2].map((number) => readFileSync(`${whole.main}.number${number}`, 'utf8'));
  t.strictSame(applied, ['a', 'a'], 'applied before the operator gets the reply');

  const part = await supervise(t, program(`if (number === 2) process.send({ type: 'applied', id });`), 2);
  await part.supervisor.start();
  await part.supervisor.applyChange(row);
  t.equal(
    readFileSync(`${part.main}.number2`, 'utf8'),
    'a',
    'a worker that does not answer delays the reply for a bounded time',
  );
});

t.test('a replacement that cannot start is tried again until one can', async (t) => {
  const program = `${NUMBER} if (number === 2) process.exit(1); ${READY}${STAY} if (number === 1) setTimeout(() => process.exit(1), 1);`;
  const wasReady: boolean[] = [];
  const onLine = (): void => void wasReady.push(supervisor.ready());
  const { supervisor, log } = await supervise(t, program, 1, onLine);
  await supervisor.start();
  await eventually('it ended', () => log.includes('a worker ended and is replaced'));
  t.equal(wasReady[0], false, 'no worker is left');
  await eventually('replaced', () => supervisor.ready());
  t.equal(log.filter((line) => line === 'the replacement of a worker could not start').length, 1);
});

t.test('a start with a worker that cannot start is refused, and the others end', async (t) => {
  const { supervisor } = await supervise(
    t,
    `${NUMBER} if (number === 3) process.exit(1); ${READY}${STAY}`,
    3,
  );
  await t.rejects(supervisor.start(), /could not start/);
  await supervisor.close();
  t.equal(supervisor.ready(), false);
});

t.test('counters do not fall when a worker ends; gauges do', async (t) => {
  const { supervisor, log } = await supervise(
    t,
    `${NUMBER}${COUNTS}${READY}${STAY} if (number === 2) process.on('SIGHUP', () => process.exit(1));`,
    2,
  );
  await supervisor.start();
  const values = async (): Promise<Record<string, number>> =>
    Object.fromEntries(
      (await sum(await supervisor.families())).map(({ name, values }) => [name, values[0]?.value ?? 0]),
    );
  t.match(await values(), { c: 10, g: 6, floodgate_workers: 2, floodgate_worker_restarts_total: 0 });
  // The first worker has no handler and dies of the signal. The second one ends by itself.
  supervisor.reload();
  const seen: number[] = [];
  await eventually('both replaced', async () => {
    const { c = 0, g = 0 } = await values();
    seen.push(c);
    return c === 20 && g === 6;
  });
  t.strictSame(
    seen,
    seen.toSorted((a, b) => a - b),
    'counters never fall',
  );
  t.equal(log.length, 2);
});

t.test('a worker that does not end when it is told to is killed', async (t) => {
  const { supervisor } = await supervise(t, `process.on('SIGTERM', () => {}); ${READY}${STAY}`);
  await supervisor.start();
  await supervisor.close();
  t.equal(supervisor.ready(), false);
});

t.test('keeps what a worker counted until shortly before it died', async (t) => {
  const state = `{ type: 'state', id: 0, storeAvailable: true, families: [
    { name: 'c', help: '', type: 'counter', aggregator: 'sum', values: [{ labels: {}, value: 7 }] },
    { name: 'h', help: '', type: 'histogram', aggregator: 'sum', values: [{ metricName: 'h_count', labels: {}, value: 2 }] },
  ] }`;
  const { supervisor } = await supervise(
    t,
    `${NUMBER}${READY}${STAY} if (number === 1) process.send(${state}, () => process.exit(1));`,
  );
  await supervisor.start();
  await eventually('replaced', async () => {
    const text = await exposition(await supervisor.families());
    return text.includes('floodgate_worker_restarts_total 1') && text.includes('floodgate_workers 1');
  });
  const text = await exposition(await supervisor.families());
  t.match(text, /^c 7$/m);
  t.match(text, /^h_count 2$/m);
});

t.test('logs a crash loop', async (t) => {
  const { supervisor, log } = await supervise(t, `${READY} setTimeout(() => process.exit(1), 1);`);
  await supervisor.start();
  await eventually('told', () => log.some((line) => line.startsWith('a worker ends repeatedly')));
  t.ok(log.filter((line) => line.startsWith('a worker ended and')).length >= 3);
});
