/** Work that waits for a time is not late by as much as the clock was set back. */
import t from 'tap';
import { createWorkspaceCache } from '#api/cache/workspace-cache.ts';
import { createMemoryCounters } from '#api/limits/memory-counters.ts';
import { createMailer } from '#api/mail/mailer.ts';
import { onceAMinute } from '#shared/once-a-minute.ts';
import { deliveriesOf, startEventApi, startTestWorker } from '#test/api/events/support.ts';
import { testClock } from '#test/support/clock.ts';

const HOUR = 3_600_000;

t.test('a delivery that was due in seconds', async (t) => {
  const api = await startEventApi(t);
  let status = 500;
  const hook = await api.addHook((response) => response.writeHead(status).end());
  await api.respond();
  await api.worker.idle();
  api.advance(-HOUR);
  status = 204;
  await api.worker.idle();
  api.advance(6_000);
  await api.worker.idle();
  t.equal(hook.received.length, 2);
  t.match(await deliveriesOf(api), [{ status: 'delivered' }]);
});

t.test('a delivery that was due while no process ran', async (t) => {
  const api = await startEventApi(t);
  let status = 500;
  const hook = await api.addHook((response) => response.writeHead(status).end());
  await api.respond();
  await api.worker.idle();
  await api.worker.stop();
  api.advance(-HOUR);
  status = 204;
  const next = startTestWorker(api);
  t.teardown(() => next.stop());
  await next.idle();
  t.equal(hook.received.length, 2);
});

t.test('a leased delivery whose process died', async (t) => {
  const api = await startEventApi(t);
  const hook = await api.addHook();
  await api.worker.stop();
  await api.respond();
  const first = startTestWorker(api);
  await first.idle();
  await first.stop();
  const { db, clock } = api.context;
  const at = (ms: number): string => new Date(clock() + ms).toISOString();
  const leased = { status: 'pending' as const, lease: 'dead', dueAt: at(15_000), updatedAt: at(0) };
  await db.updateTable('deliveries').set(leased).execute();
  api.advance(-HOUR);
  const next = startTestWorker(api);
  t.teardown(() => next.stop());
  await next.idle();
  t.equal(hook.received.length, 1, 'its attempt may still run');
  api.advance(15_000);
  await next.idle();
  t.equal(hook.received.length, 2);
});

t.test('a lease says when it was taken', async (t) => {
  const api = await startEventApi(t);
  const answered = Promise.withResolvers<void>();
  const heard = Promise.withResolvers<void>();
  let count = 0;
  await api.addHook(async (response) => {
    count += 1;
    if (count === 1) {
      response.writeHead(500).end();
      return;
    }
    heard.resolve();
    await answered.promise;
    response.writeHead(204).end();
  });
  await api.respond();
  await api.worker.idle();
  api.advance(6_000);
  await heard.promise;
  const [delivery] = await deliveriesOf(api);
  t.equal(delivery?.updatedAt, new Date(api.context.clock()).toISOString());
  answered.resolve();
});

t.test('a mail that was due in seconds', async (t) => {
  const api = await startEventApi(t);
  const { db, clock, random } = api.context;
  let isUp = false;
  let sent = 0;
  const transport = {
    async send() {
      if (!isUp) throw new Error('busy');
      sent += 1;
    },
    close: () => undefined,
  };
  const log = { info: () => undefined, warn: () => undefined, error: () => undefined };
  const mailer = () => {
    const made = createMailer({ db, transport, clock, random, log });
    t.teardown(() => made.close());
    return made;
  };
  const running = mailer();
  const mail = { kind: 'test', to: 'to@example.com', subject: 's', body: 'b' };
  await running.accept(db, mail);
  await running.idle();
  isUp = true;
  api.advance(-HOUR);
  await running.idle();
  api.advance(120_000);
  await running.idle();
  t.equal(sent, 1, 'while a process ran');
  await running.accept(db, mail);
  api.advance(-HOUR);
  const next = mailer();
  await next.idle();
  api.advance(120_000);
  await next.idle();
  t.equal(sent, 2, 'while none ran');
});

t.test('what a process keeps in memory', async (t) => {
  const { now, advance } = testClock();
  const counters = createMemoryCounters(now);
  await counters.use('x', 'k', 60);
  const cache = createWorkspaceCache({ clock: now, isHeard: () => true });
  let built = 0;
  const build = async () => {
    built += 1;
    return { bytes: 1, validUntil: now() + 300_000 };
  };
  await cache.get('w', build);
  let logged = 0;
  const log = onceAMinute(now, () => {
    logged += 1;
  });
  log();
  advance(-HOUR);
  t.equal((await counters.use('x', 'k', 60)).used, 1, 'a window begins');
  await cache.get('w', build);
  t.equal(built, 2, 'a state is built again');
  log();
  t.equal(logged, 2, 'a message is logged');
});
