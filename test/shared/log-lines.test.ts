/** The log: a destination that fails loses lines, but never delays requests or ends the process. */
import { execFileSync, spawn } from 'node:child_process';
import { once } from 'node:events';
import { closeSync, constants, openSync, readFileSync, readSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { LogLines } from '#shared/log-lines.ts';
import type { Owner } from '#test/support/gateway.ts';
import { environment, eventually } from '#test/support/gateway-process.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

/** Returns a full pipe that is not read until `drain`. */
function fullPipe(owner: Owner) {
  const file = join(temporaryFolder(owner), 'pipe');
  execFileSync('mkfifo', [file]);
  const reader = openSync(file, constants.O_RDWR | constants.O_NONBLOCK);
  const fill = Buffer.alloc(4096, '.');
  try {
    for (;;) writeSync(reader, fill);
  } catch {
    // EAGAIN: it is full.
  }
  const writer = openSync(file, constants.O_WRONLY);
  owner.teardown(() => closeSync(reader));
  return {
    writer,
    drain(): string {
      const buffer = Buffer.alloc(65_536);
      let text = '';
      try {
        for (;;) text += buffer.toString('latin1', 0, readSync(reader, buffer));
      } catch {
        return text;
      }
    },
  };
}

/** Starts a gateway that logs there. */
async function startLogging(owner: Owner, stderr: number) {
  const env = await environment();
  const child = spawn(process.execPath, ['gateway/main.ts'], {
    cwd: projectRoot,
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'ignore', stderr],
  });
  closeSync(stderr);
  const ended = once(child, 'exit');
  owner.teardown(() => child.kill('SIGKILL'));
  const health = `http://127.0.0.1:${env.GATEWAY_ADMIN_PORT}/healthz`;
  const status = (): Promise<number> =>
    fetch(health).then(
      (reply) => reply.status,
      () => 0,
    );
  return {
    isServing: () => eventually('it serves', status, (found) => found === 200 || child.exitCode !== null),
    async stop(): Promise<unknown> {
      child.kill('SIGTERM');
      const [code] = await ended;
      return code;
    },
  };
}

t.test('a gateway whose log is on a full disk serves, and stops when told to', async (t) => {
  const gateway = await startLogging(t, openSync('/dev/full', 'w'));
  t.equal(await gateway.isServing(), 200);
  t.equal(await gateway.stop(), 0);
});

t.test('a gateway whose log nobody reads serves, and stops when told to', async (t) => {
  const gateway = await startLogging(t, fullPipe(t).writer);
  t.equal(await gateway.isServing(), 200);
  t.equal(await gateway.stop(), 0);
});

t.test('a pipe gets what it has room for, and the number of lost lines', async (t) => {
  const pipe = fullPipe(t);
  const told: number[] = [];
  const lines = new LogLines({
    descriptor: pipe.writer,
    waitingBytesMax: 250,
    onLost: (lost) => void told.push(lost),
  });
  const line = `${'x'.repeat(99)}\n`;
  for (let i = 0; i < 5; i++) lines.write(line);
  t.strictSame(told, []);
  let text = '';
  await eventually(
    'what waits is written',
    async () => {
      text += pipe.drain();
      return text.split(line).length - 1;
    },
    (found) => found === 2,
  );
  await eventually(
    'they are told of',
    async () => {
      lines.write(line);
      return told;
    },
    (found) => found.length > 0,
  );
  t.strictSame(told, [3]);
  lines.close();
});

t.test('a file gets all lines, in order', (t) => {
  const file = join(temporaryFolder(t), 'log');
  const descriptor = openSync(file, 'a');
  t.teardown(() => closeSync(descriptor));
  const lines = new LogLines({ descriptor, onLost: () => t.fail('no line is lost') });
  for (let i = 0; i < 100; i++) lines.write(`${i}\n`);
  t.equal(readFileSync(file, 'utf8'), Array.from({ length: 100 }, (_, i) => `${i}\n`).join(''));
  t.end();
});

t.test('a full disk loses only the lines that do not fit', (t) => {
  const descriptor = openSync('/dev/full', 'w');
  t.teardown(() => closeSync(descriptor));
  const lines = new LogLines({ descriptor, onLost: () => t.fail('the disk is still full') });
  lines.write('one\n');
  lines.write('two\n');
  t.pass('nothing is thrown');
  t.end();
});
