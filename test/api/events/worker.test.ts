/** Deliveries from a response to its receiver: bodies, further attempts, and the order of receivers. */
import { Webhook } from 'standardwebhooks';
import t from 'tap';
import { createSender, type SendResult } from '#api/events/sender.ts';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { addSurvey, publicUrl, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';
import { until } from '#test/support/until.ts';
import {
  attemptsOf,
  deliveriesOf,
  makeDueAgain,
  type Receiver,
  startEventApi,
  startReceiver,
  startTestWorker,
} from './support.ts';

const secret = `whsec_${Buffer.alloc(32, 7).toString('base64')}`;
const all = ['responseCreated', 'responseUpdated', 'responseFinished'];

/** The result of an attempt without any answer. */
const hung: SendResult = {
  isDelivered: false,
  isHung: true,
  statusCode: null,
  reply: null,
  error: 'No answer',
  retryAfter: null,
};

const eventsOf = ({ received }: Receiver): readonly string[] => received.map(({ json }) => json.event).sort();

t.test('sends each change with all its data to the webhooks that want it', async (t) => {
  const api = await startEventApi(t);
  const everything = await startReceiver(t);
  const finished = await startReceiver(t);
  const other = await startReceiver(t);
  const survey = await addSurvey(api);
  await api.addWebhook({ url: everything.url, triggers: all });
  await api.addWebhook({ url: finished.url, triggers: ['responseFinished'], surveyIds: ['x', survey.id] });
  await api.addWebhook({ url: other.url, triggers: all, surveyIds: ['another'] });
  await api.addWorkspace('ws2');
  await api.addWebhook({ url: other.url, triggers: all, workspaceId: 'ws2' });
  const told = async (change: () => Promise<unknown>): Promise<readonly string[]> => {
    everything.received.length = 0;
    await change();
    await api.worker.idle();
    return eventsOf(everything);
  };

  let id = '';
  const client = '/api/v1/client/ws1/responses';
  const management = '/api/v1/management/responses';
  t.same(await told(async () => (id = await api.respond({ surveyId: survey.id }))), ['responseCreated']);
  t.same(await told(() => api.client('PUT', `${client}/${id}`, { finished: false, data: {} })), [
    'responseUpdated',
  ]);
  t.same(await told(() => api.client('PUT', `${client}/${id}`, { finished: true, data: {} })), [
    'responseFinished',
    'responseUpdated',
  ]);
  t.same(
    await told(() => api.manage('PUT', `${management}/${id}`, { data: { q1: 'No' } })),
    ['responseFinished', 'responseUpdated'],
    'a change of a finished response sends both events',
  );
  t.same(
    await told(() =>
      api.manage('POST', management, { surveyId: survey.id, data: { q1: 'x' }, finished: true }),
    ),
    ['responseCreated', 'responseFinished'],
  );
  t.same(
    await told(() =>
      api.client('POST', '/api/v2/client/ws1/responses', { surveyId: survey.id, data: {}, finished: false }),
    ),
    ['responseCreated'],
  );
  t.same(await told(() => api.manage('DELETE', `${management}/${id}`)), []);
  t.same(
    await told(() => api.client('PUT', `${client}/${id}`, { finished: true })),
    [],
    'a refused update sends no event',
  );
  t.same(new Set(eventsOf(finished)), new Set(['responseFinished']));
  t.equal(finished.received.length, 3);
  t.equal(other.received.length, 0, 'webhooks of other surveys and workspaces get nothing');
});

t.test('the payload serves old and new consumers, and is signed', async (t) => {
  const api = await startEventApi(t, { clock: Date.now });
  const hook = await startReceiver(t);
  const survey = await addSurvey(api, {
    autoComplete: 1,
    questions: [{ id: 'q1', type: 'fileUpload', headline: 'Send it', allowMultipleFiles: false }],
  });
  const made = await api.manage('POST', '/api/v1/webhooks', {
    url: hook.url,
    triggers: ['responseFinished'],
  });
  const { id: webhookId, secret: shownOnce } = made.json.data;
  await findOrCreateContact(
    api.context.db,
    workspaceId,
    'u1',
    '2026-01-01T00:00:00.000Z',
    api.context.random,
  );
  const file = `/storage/${workspaceId}/private/a.png`;
  const id = await api.respond({
    surveyId: survey.id,
    finished: true,
    userId: 'u1',
    data: { q1: [file] },
    ttc: { q1: 5 },
    meta: { url: 'https://x.example', source: 'mail' },
  });
  await api.worker.idle();
  const [received] = hook.received;
  if (received === undefined) throw new Error('nothing arrived');
  const verified = new Webhook(shownOnce).verify(received.text, {
    'webhook-id': String(received.headers['webhook-id']),
    'webhook-timestamp': String(received.headers['webhook-timestamp']),
    'webhook-signature': String(received.headers['webhook-signature']),
  });
  t.same(verified, received.json);
  t.same(Object.keys(received.json), ['webhookId', 'event', 'data']);
  t.match(received.json, { webhookId, event: 'responseFinished' });
  const { data } = received.json;
  t.match(data, {
    id,
    surveyId: survey.id,
    finished: true,
    endingId: null,
    displayId: null,
    data: { q1: [`${publicUrl}${file}`] },
    variables: {},
    ttc: { q1: 5, _total: 5 },
    meta: { url: 'https://x.example', source: 'mail', userAgent: {} },
    contact: { userId: 'u1' },
    contactAttributes: { userId: 'u1' },
    person: { userId: 'u1', attributes: { userId: 'u1' } },
    personAttributes: { userId: 'u1' },
    singleUseId: null,
    language: null,
    tags: [],
    notes: [],
    survey: { title: 'Survey', type: 'link', status: 'completed', createdAt: String, updatedAt: String },
  });
  const { json } = await api.manage('GET', `/api/v1/management/responses/${id}`);
  const { survey: _, ...response } = data;
  t.same(response, json.data);
});

t.test('after a minute of 500 a receiver gets the event: same bytes and id, a new time', async (t) => {
  const api = await startEventApi(t);
  const since = api.context.clock();
  const hook = await api.addHook((response) =>
    response.writeHead(api.context.clock() - since < 60_000 ? 500 : 200).end('busy'),
  );
  await api.respond();
  await api.worker.idle();
  for (const [seconds, attempts] of [
    // The clock is set back, so the next attempt is late, but it is made.
    [-3_600, 1],
    [3_604.9, 1],
    [1.1, 2],
    [9.9, 2],
    [2.1, 3],
    [24, 4],
    [48, 5],
    [1_000, 5],
  ] as const) {
    api.advance(seconds * 1_000);
    await api.worker.idle();
    t.equal(hook.received.length, attempts, `${attempts} attempts after another ${seconds} s`);
  }
  t.equal(new Set(hook.received.map(({ text }) => text)).size, 1);
  t.equal(new Set(hook.received.map(({ headers }) => headers['webhook-id'])).size, 1);
  t.equal(new Set(hook.received.map(({ headers }) => headers['webhook-timestamp'])).size, 5);
  t.match(await deliveriesOf(api), [{ status: 'delivered', attemptCount: 5, dueAt: null }]);
  t.same(column(await attemptsOf(api), 'statusCode'), [500, 500, 500, 500, 200]);
});

t.test('an event keeps its content if its response or survey is deleted before delivery', async (t) => {
  const api = await startEventApi(t);
  let status = 500;
  const hook = await api.addHook((response) => response.writeHead(status).end());
  const survey = await addSurvey(api);
  await api.respond({ surveyId: survey.id });
  await api.worker.idle();
  await api.manage('DELETE', `/api/v1/management/surveys/${survey.id}`);
  status = 200;
  api.advance(6_000);
  await api.worker.idle();
  t.equal(hook.received.length, 2);
  t.equal(hook.received[0]?.text, hook.received[1]?.text);
  t.match(hook.received[1]?.json.data, { data: { q1: 'Yes' }, survey: { status: 'inProgress' } });
});

t.test('a deleted webhook gets no further attempts, and a running one is stopped', async (t) => {
  const api = await startEventApi(t);
  const { db } = api.context;
  const remove = (id: string) => db.deleteFrom('webhooks').where('id', '=', id).execute();
  const failing = await api.addHook((response) => response.writeHead(500).end());
  await api.respond();
  await api.worker.idle();
  await remove(failing.id);
  api.advance(60_000);
  await api.worker.idle();
  t.equal(failing.received.length, 1);

  const second = await api.addHook(
    (response) => void remove(second.id).then(() => response.writeHead(500).end()),
  );
  await api.respond();
  await api.worker.idle();
  t.same(await db.selectFrom('deliveries').selectAll().execute(), []);
  t.same(await db.selectFrom('deliveryAttempts').selectAll().execute(), []);
});

t.test('an attempt uses the current address and secret, but the original body', async (t) => {
  const api = await startEventApi(t, { clock: Date.now });
  const old = await api.addHook((response) => response.writeHead(500).end());
  const { url, received } = await startReceiver(t);
  await api.respond();
  await api.worker.idle();
  await api.context.db.updateTable('webhooks').set({ url, secret }).where('id', '=', old.id).execute();
  const [delivery] = await deliveriesOf(api);
  await makeDueAgain(api, delivery?.id ?? '');
  await api.worker.idle();
  t.equal(received[0]?.text, old.received[0]?.text);
  const [repeated] = received;
  t.equal(repeated?.headers['webhook-id'], delivery?.id);
  const headers = repeated?.headers as Record<string, string>;
  t.ok(new Webhook(secret).verify(repeated?.text ?? '', headers), 'the new secret signs it');
});

t.test('a receiver that hangs delays no other receiver', async (t) => {
  const api = await startEventApi(t, {
    // Longer than the test may take, so the first attempts hang during all later steps.
    parts: ({ targets }) => ({ sender: createSender(targets, 600_000) }),
  });
  const hanging = await api.addHook(() => {});
  const quick = await api.addHook();
  for (let i = 0; i < 60; i += 1) await api.respond();
  await until(() => quick.received.length >= 60);
  t.equal(quick.received.length, 60);
  t.equal(hanging.received.length, 4, 'it uses only its own places');
  hanging.close();
});

t.test('a receiver that asks for a pause gets it, up to an hour', async (t) => {
  const api = await startEventApi(t);
  const asked: (readonly [status: number, retryAfter: string])[] = [
    [429, '60'],
    [503, new Date(api.context.clock() + 60_000 + 120_000).toUTCString()],
    [429, '999999999'],
    [500, '600'],
    [429, 'soon'],
  ];
  const hook = await api.addHook((response) => {
    const [status, retryAfter] = asked.shift() ?? [204, ''];
    response.writeHead(status, { 'retry-after': retryAfter }).end();
  });
  await api.respond();
  await api.worker.idle();
  for (const [seconds, attempts, what] of [
    [59, 1, 'a number of seconds'],
    [2, 2, 'it is over'],
    [117, 2, 'a date'],
    [5, 3, 'it is over'],
    [3_599, 3, 'longer than an hour'],
    [2, 4, 'the longest pause is an hour'],
    [48, 5, 'other statuses have the usual pause'],
    [96, 6, 'and so has what cannot be read'],
  ] as const) {
    api.advance(seconds * 1_000);
    await api.worker.idle();
    t.equal(hook.received.length, attempts, what);
  }
  t.match(await deliveriesOf(api), [{ status: 'delivered' }]);
});

t.test('410 parks a delivery at once', async (t) => {
  const api = await startEventApi(t);
  const hook = await api.addHook((response) => response.writeHead(410, { 'retry-after': '1' }).end());
  await api.respond();
  await api.worker.idle();
  api.advance(3_600_000);
  await api.worker.idle();
  t.equal(hook.received.length, 1);
  t.match(await deliveriesOf(api), [{ status: 'parked', attemptCount: 1, dueAt: null }]);
});

t.test('a receiver that hangs pauses its webhook, also after a restart, until it answers', async (t) => {
  const results: Partial<SendResult>[] = [];
  let attempts = 0;
  const sender = {
    async send() {
      attempts += 1;
      return { ...hung, ...results.shift() };
    },
    close: async () => undefined,
  };
  const api = await startEventApi(t, { parts: () => ({ sender }) });
  await api.addWebhook({ url: 'https://hooks.example.com/' });
  await api.worker.stop();
  for (let i = 0; i < 30; i += 1) await api.respond();
  const restarted = (): ReturnType<typeof startTestWorker> => {
    const worker = startTestWorker(api);
    t.teardown(() => worker.stop());
    return worker;
  };
  const first = restarted();
  await first.idle();
  const begun = attempts;
  t.ok(begun >= 3 && begun <= 7, `${begun}: what had begun before the third without an answer`);
  await first.stop();
  const second = restarted();
  await second.idle();
  t.equal(attempts, begun, 'the pause is in the database');
  for (let pause = 1; pause <= 3; pause += 1) {
    api.advance(60_000);
    await second.idle();
    t.equal(attempts, begun + 4 * pause, 'four attempts after each pause');
  }
  t.ok(
    (await deliveriesOf(api)).every(({ status }) => status === 'pending'),
    'the others wait',
  );
  results.push(...Array.from({ length: 30 }, () => ({ ...hung, isDelivered: true, isHung: false })));
  api.advance(60_000);
  await second.idle();
  api.advance(600_000);
  await second.idle();
  t.ok((await deliveriesOf(api)).every(({ status }) => status === 'delivered'));
});

t.test('parks a delivery whose process dies at every attempt', async (t) => {
  const api = await startEventApi(t);
  const hook = await api.addHook();
  const { db } = api.context;
  await api.worker.stop();
  await api.respond();
  // Its last attempt was leased, and its process died.
  await db.updateTable('deliveries').set({ attemptCount: 2, failureCount: 2, lease: 'dead' }).execute();
  const worker = startTestWorker(api, { attemptsMax: 2 });
  t.teardown(() => worker.stop());
  await worker.idle();
  t.equal(hook.received.length, 0, 'there is no third attempt');
  const [parked] = await deliveriesOf(api);
  t.match(parked, { status: 'parked', dueAt: null });
  await makeDueAgain(api, parked?.id ?? '');
  await worker.idle();
  t.equal(hook.received.length, 1, 'an attempt is made when the operator asks for it');
});

t.test('an answer within a second makes a receiver quick, and a later one makes it slow', async (t) => {
  let takesMs = 0;
  const sender = {
    async send() {
      api.advance(takesMs);
      return { ...hung, isDelivered: true, isHung: false, statusCode: 204 };
    },
    close: async () => undefined,
  };
  const api = await startEventApi(t, { parts: () => ({ sender }) });
  await api.addWebhook({ url: 'https://hooks.example.com/' });
  const isQuick = async () =>
    (await api.context.db.selectFrom('webhooks').select('isQuick').executeTakeFirst())?.isQuick;
  t.equal(await isQuick(), 0, 'nothing is known of a new one');
  for (const [ms, expected] of [
    [1_000, 1],
    [1_001, 0],
    [0, 1],
  ] as const) {
    takesMs = ms;
    await api.respond();
    await api.worker.idle();
    t.equal(await isQuick(), expected, `${ms} ms`);
  }
});
