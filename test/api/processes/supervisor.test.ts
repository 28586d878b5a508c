/** The supervisor runs workers that misbehave on purpose: programs of a few lines in place of the API. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { createSupervisor, type Supervisor } from '#api/processes/supervisor.ts';
import { freePort } from '#test/support/ports.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

/** Reports the number of this worker, from 1, and that it is ready. */
const PRELUDE = `const { existsSync, readFileSync, writeFileSync } = require('node:fs');
const file = __filename + '.number';
const number = existsSync(file) ? Number(readFileSync(file, 'utf8')) + 1 : 1;
writeFileSync(file, String(number));
const address = 'http://127.0.0.1:' + process.env.API_PORT;
const ready = () => process.send({ kind: 'ready', address, notice: number === 1 ? 'First start' : null });
process.on('disconnect', () => process.exit(0));
setInterval(() => {}, 1000);
`;

async function supervise(
  t: Test,
  program: string,
): Promise<{ readonly supervisor: Supervisor; readonly log: string[]; readonly file: string }> {
  const folder = temporaryFolder(t);
  const main = join(folder, 'worker.cjs');
  writeFileSync(main, PRELUDE + program);
  const log: string[] = [];
  const supervisor = createSupervisor({
    main,
    execArgv: [],
    env: process.env,
    workers: 2,
    host: '127.0.0.1',
    port: await freePort(),
    clock: Date.now,
    endTimeoutMs: 200,
    log: pino({ base: null }, { write: (line: string) => void log.push(JSON.parse(line).msg) }),
  });
  t.teardown(() => supervisor.close());
  return { supervisor, log, file: `${main}.number` };
}

t.test('keeps the credentials of the first start when another worker cannot start', async (t) => {
  const { supervisor } = await supervise(t, 'if (number === 2) process.exit(1); ready();');
  await t.rejects(supervisor.start(), { message: 'a worker could not start' });
  t.equal(supervisor.notice(), 'First start');
});

t.test('counts the uses of all workers together', async (t) => {
  const { supervisor, file } = await supervise(
    t,
    `const answers = [];
    process.on('message', (message) => {
      answers.push(message);
      if (answers.length < 3) return;
      writeFileSync(__filename + '.' + number, JSON.stringify(answers));
      ready();
    });
    const use = { kind: 'use', name: 'n', key: 'k', windowSeconds: 60 };
    process.send({ ...use, id: 7 });
    process.send({ ...use, id: 8, windowSeconds: null });
    process.send({ ...use, id: 9 });`,
  );
  await supervisor.start();
  const told = [1, 2].flatMap((number) =>
    JSON.parse(readFileSync(file.replace(/number$/, String(number)), 'utf8')),
  );
  t.match(told, [
    { kind: 'count', id: 7, count: { used: 1 } },
    { kind: 'count', id: 8, count: null },
    { kind: 'count', id: 9, count: { used: 1 } },
    { kind: 'count', id: 7, count: { used: 2 } },
    { kind: 'count', id: 8, count: null },
    { kind: 'count', id: 9, count: { used: 2 } },
  ]);
});

t.test('kills a worker that does not end when told to', async (t) => {
  const { supervisor } = await supervise(t, `process.on('SIGTERM', () => {}); ready();`);
  await supervisor.start();
  await supervisor.close();
});

t.test('replaces a worker that keeps ending after growing pauses, and logs it', async (t) => {
  const { supervisor, log } = await supervise(
    t,
    'ready(); if (number > 1) setTimeout(() => process.exit(1), 1);',
  );
  await supervisor.start();
  await until(() => log.some((line) => line.startsWith('a worker ends repeatedly')));
  t.ok(log.filter((line) => line.startsWith('a worker ended and')).length >= 3);
});
