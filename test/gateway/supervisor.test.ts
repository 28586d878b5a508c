/** The supervisor with workers that misbehave on purpose: programs of a few lines in place of the gateway's own. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { Supervisor } from '#gateway/supervisor.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const READY = `process.send({ type: 'ready', port: Number(process.env.GATEWAY_PORT), policies: 1 });`;
const STAY = 'setInterval(() => {}, 1000);';
/** Says that it has counted five and has three of something. */
const COUNTS = `process.on('message', ({ id }) => process.send({ type: 'state', id, storeAvailable: true, samples: [
  { name: 'c', help: '', type: 'counter', labels: {}, value: 5 },
  { name: 'g', help: '', type: 'gauge', labels: {}, value: 3 },
] }));`;
/** Which worker of this test is this one, from 1. */
const NUMBER = `const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const file = __filename + '.number';
const number = existsSync(file) ? Number(readFileSync(file, 'utf8')) + 1 : 1;
writeFileSync(file, String(number));`;

async function supervise(
  t: Test,
  program: string,
  workers = 1,
): Promise<{ supervisor: Supervisor; log: string[] }> {
  const folder = temporaryFolder(t);
  const main = join(folder, 'worker.cjs');
  writeFileSync(main, program);
  const log: string[] = [];
  const supervisor = new Supervisor({
    main,
    execArgv: [],
    env: process.env,
    workers,
    host: '127.0.0.1',
    port: await freePort(),
    drainTimeoutMs: 0,
    log: pino({ base: null }, { write: (line: string) => void log.push(JSON.parse(line).msg) }),
  });
  t.teardown(() => supervisor.close());
  return { supervisor, log };
}

async function eventually(what: string, holds: () => Promise<boolean> | boolean): Promise<void> {
  for (const deadline = performance.now() + 30_000; performance.now() < deadline; await delay(20)) {
    if (await holds()) return;
  }
  throw new Error(`not within thirty seconds: ${what}`);
}

t.test('a worker that can no longer be asked is left out, and the supervisor lives', async (t) => {
  const { supervisor } = await supervise(t, `${READY}${STAY} setTimeout(() => process.disconnect(), 1);`);
  await supervisor.start();
  for (let i = 0; i < 10; i++) {
    t.strictSame(await supervisor.samples(), []);
    await delay(10);
  }
  t.equal(supervisor.ready(), true);
});

t.test('a replacement that cannot start is tried again until one can', async (t) => {
  const program = `${NUMBER} if (number === 2) process.exit(1); ${READY}${STAY} if (number === 1) setTimeout(() => process.exit(1), 1);`;
  const { supervisor, log } = await supervise(t, program);
  await supervisor.start();
  await eventually('it ended', () => log.includes('a worker ended; another one takes its place'));
  t.equal(supervisor.ready(), false, 'nobody is left');
  await eventually('replaced', () => supervisor.ready());
  t.equal(log.filter((line) => line === 'no new worker yet').length, 1);
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
    Object.fromEntries((await supervisor.samples()).map(({ name, value }) => [name, value]));
  t.strictSame(await values(), { c: 10, g: 6 });
  // The first one has no handler and dies of it, the second one ends by itself.
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
    'never less than before',
  );
  t.equal(log.length, 2);
});

t.test('a worker that does not end when it is told to is killed', async (t) => {
  const { supervisor } = await supervise(t, `process.on('SIGTERM', () => {}); ${READY}${STAY}`);
  await supervisor.start();
  await supervisor.close();
  t.equal(supervisor.ready(), false);
});
