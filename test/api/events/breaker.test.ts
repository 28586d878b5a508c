/** Receivers that hang do not delay others. They are tested regularly, and recover. */
import t from 'tap';
import { createBreaker } from '#api/events/breaker.ts';
import { leaseDeliveries } from '#api/events/lease.ts';
import type { SendResult } from '#api/events/sender.ts';
import { fanOut } from '#api/jobs/fan-out.ts';
import { workspaceId } from '#test/support/api-app.ts';
import { testClock } from '#test/support/clock.ts';
import { until } from '#test/support/until.ts';
import {
  addWorkspaceOf,
  attemptsOf,
  deliveriesOf,
  makeDueAgain,
  startEventApi,
  startTestWorker,
} from './support.ts';

t.test('opens after three timeouts in a row, and retries after growing pauses', async (t) => {
  const clock = testClock();
  const breaker = createBreaker(clock.now);
  const hang = () => breaker.record('a', true);
  t.same(
    [hang(), hang(), breaker.record('a', false), hang(), hang()],
    [...['closed', 'closed', 'closed', 'closed', 'closed']],
  );
  t.equal(hang(), 'open');
  t.equal(hang(), 'open', 'an attempt that began earlier changes nothing');
  for (const pause of [10_000, 20_000, 40_000, 60_000, 60_000]) {
    clock.advance(pause - 1);
    t.equal(breaker.state('a'), 'open', `${pause} ms`);
    clock.advance(1);
    t.equal(breaker.state('a'), 'probing');
    const end = breaker.beginProbe('a');
    t.equal(breaker.state('a'), 'open', 'only one attempt at a time');
    t.equal(hang(), 'open');
    end();
  }
  clock.advance(60_000);
  breaker.beginProbe('a')();
  t.equal(breaker.state('a'), 'probing', 'an attempt without a result is repeated');
  breaker.beginProbe('a');
  t.equal(breaker.record('a', false), 'closed');
  t.equal(hang(), 'closed', 'earlier timeouts do not count any more');
});

t.test('remembers a bounded number of receivers', async (t) => {
  const breaker = createBreaker(testClock().now, 2);
  for (const id of ['a', 'b', 'c']) for (let i = 0; i < 3; i += 1) breaker.record(id, true);
  t.same(['a', 'b', 'c'].map(breaker.state), ['closed', 'open', 'open']);
});

/** Returns senders whose attempts end on request of the test. */
function manualSender() {
  const open: { url: string; end: (result: Partial<SendResult>) => void }[] = [];
  return {
    open,
    sender: {
      send: ({ url }: { readonly url: string }) =>
        new Promise<SendResult>((resolve) => {
          const end = (result: Partial<SendResult>): void =>
            resolve({
              isDelivered: false,
              statusCode: null,
              reply: null,
              error: 'x',
              isHung: true,
              isPrivate: false,
              retryAfter: null,
              ...result,
            });
          open.push({ url, end });
        }),
      close: async () => undefined,
    },
  };
}

t.test('a host behind forty webhooks of ten organizations leaves room for others', async (t) => {
  const { open, sender } = manualSender();
  const api = await startEventApi(t, { parts: () => ({ sender }) });
  t.teardown(() => {
    for (const { end } of open) end({});
  });
  const now = '2026-01-01T00:00:00.000Z';
  for (let w = 0; w < 10; w += 1) {
    const id = `hanging${w}`;
    await addWorkspaceOf(api, id, id);
    const hooks = [];
    for (let i = 0; i < 4; i += 1) {
      hooks.push(await api.addWebhook({ url: `https://n8n.example/${w}/${i}`, workspaceId: id }));
    }
    for (let e = 0; e < 4; e += 1) {
      const eventId = `e${w}-${e}`;
      const of = { workspaceId: id, surveyId: 's', responseId: 'r', type: 'responseCreated' as const };
      await api.context.db
        .insertInto('events')
        .values({ ...of, id: eventId, createdAt: now, snapshot: null, payload: '{"a":1}', fannedOutAt: now })
        .execute();
      await api.context.db
        .insertInto('deliveries')
        .values(
          hooks.map((webhookId) => ({
            id: `${eventId}-${webhookId}`,
            createdAt: now,
            updatedAt: now,
            eventId,
            webhookId,
            status: 'pending' as const,
            attemptCount: 0,
            failureCount: 0,
            dueAt: now,
            lease: null,
          })),
        )
        .execute();
    }
  }
  api.context.outbox.notify();
  await until(() => open.length >= 32);
  await api.addWebhook({ url: 'https://healthy.example/', workspaceId });
  await api.respond();
  await until(() => open.some(({ url }) => url === 'https://healthy.example/'));
  t.equal(open.filter(({ url }) => url.startsWith('https://n8n.example')).length, 32);
});

t.test('a backlog at a hanging receiver is parked with few attempts, and recovers', async (t) => {
  let attempts = 0;
  const results: Partial<SendResult>[] = [];
  const api = await startEventApi(t, {
    parts: () => ({
      sender: {
        async send() {
          attempts += 1;
          return {
            ...{
              isDelivered: false,
              statusCode: null,
              reply: null,
              error: 'No answer',
              isHung: true,
              isPrivate: false,
              retryAfter: null,
            },
            ...results.shift(),
          };
        },
        close: async () => undefined,
      },
    }),
  });
  await api.addWebhook({ url: 'https://hooks.example.com/' });
  await api.worker.stop();
  for (let i = 0; i < 30; i += 1) await api.respond();
  const worker = startTestWorker(api, { attemptsMax: 4 });
  t.teardown(() => worker.stop());
  const statuses = async () => {
    const rows = await api.context.db.selectFrom('deliveries').select('status').execute();
    return Object.fromEntries(
      [...Map.groupBy(rows, ({ status }) => status)].map(([status, all]) => [status, all.length]),
    );
  };
  await worker.idle();
  t.equal(attempts, 4, 'the attempts that had begun before the third timeout');
  t.same(await statuses(), { pending: 30 });
  for (let minute = 0; minute < 5; minute += 1) {
    api.advance(60_000);
    await worker.idle();
  }
  t.same(await statuses(), { parked: 30 }, 'after four failed attempts');
  t.ok(attempts <= 8, `${attempts} attempts instead of 120`);
  t.ok((await deliveriesOf(api)).every(({ attemptCount }) => attemptCount === 4));
  const errors = new Set((await attemptsOf(api)).map(({ error }) => error));
  t.same([...errors].sort(), [
    'No answer',
    'Not sent: the receiver did not answer another delivery at this time',
  ]);

  api.advance(60_000);
  for (let i = 0; i < 10; i += 1)
    results.push({ isDelivered: true, statusCode: 204, error: null, isHung: false, isPrivate: false });
  for (let i = 0; i < 10; i += 1) await api.respond();
  await worker.idle();
  t.same(await statuses(), { parked: 30, delivered: 10 }, 'after one successful attempt the rest follow');
});

t.test('parks a delivery whose process dies at every attempt, with the reason', async (t) => {
  const api = await startEventApi(t);
  const hook = await api.addHook();
  const { db, clock } = api.context;
  await api.worker.stop();
  await api.respond();
  await fanOut(api.context, { warn: () => undefined });
  for (let i = 0; i < 2; i += 1) {
    // The delivery is leased, and its process dies.
    const at = (ms: number) => new Date(clock() + ms).toISOString();
    const wanted = { webhookId: hook.id, count: 1, now: at(0) };
    t.equal((await leaseDeliveries(db, wanted, { name: `dead${i}`, until: at(15_000) })).length, 1);
    api.advance(15_000);
  }
  const worker = startTestWorker(api, { attemptsMax: 2 });
  t.teardown(() => worker.stop());
  await worker.idle();
  t.equal(hook.received.length, 0, 'there is no third attempt');
  const [parked] = await deliveriesOf(api);
  t.match(parked, { status: 'parked', attemptCount: 2, dueAt: null });
  t.match(await attemptsOf(api), [{ number: 2, error: /did not end/ }]);
  await makeDueAgain(api, parked?.id ?? '');
  await worker.idle();
  t.equal(hook.received.length, 1, 'an attempt is made when the operator asks for it');
});
