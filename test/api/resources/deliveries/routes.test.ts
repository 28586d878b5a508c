import { Webhook } from 'standardwebhooks';
import t, { type Test } from 'tap';
import { listDeliveries } from '#api/resources/deliveries/store.ts';
import { addSurvey } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';
import { type EventApi, startEventApi, startReceiver } from '../../events/support.ts';

async function eventApi(t: Test): Promise<EventApi> {
  return startEventApi(t, { env: { WEBHOOK_ATTEMPTS: '2' } });
}

async function respond(api: EventApi, surveyId: string): Promise<string> {
  const body = { surveyId, finished: false, data: {} };
  const reply = await api.client('POST', '/api/v1/client/ws1/responses', body);
  await api.worker.idle();
  return reply.json.data.id;
}

/** All receivers of tests are on loopback. A row shows how others are displayed. */
async function asIfPublic(api: EventApi): Promise<void> {
  await api.context.db.updateTable('deliveryAttempts').set({ isPrivate: 0 }).execute();
}

t.test('GET 200: newest first, with every attempt; then redelivers', async (t) => {
  const api = await eventApi(t);
  let status = 503;
  const hook = await startReceiver(t, (response) => response.writeHead(status).end('x'.repeat(2_000)));
  const survey = await addSurvey(api);
  const id = await api.addWebhook({ url: hook.url });
  const path = `/api/v1/webhooks/${id}/deliveries`;
  t.same((await api.manage('GET', path)).json, { data: [] });

  const responseId = await respond(api, survey.id);
  const [waiting] = (await api.manage('GET', path)).json.data;
  t.match(waiting, {
    webhookId: id,
    event: 'responseCreated',
    surveyId: survey.id,
    responseId,
    status: 'pending',
    attemptCount: 1,
    attempts: [{ number: 1, statusCode: null, reply: 'hidden', error: null }],
  });
  t.notMatch(JSON.stringify(waiting), /503|xx/, 'replies of a receiver in a private network are not shown');
  await asIfPublic(api);
  t.match((await api.manage('GET', path)).json.data[0].attempts, [
    { number: 1, statusCode: 503, reply: 'x'.repeat(1_024), error: null },
  ]);
  const pause = Date.parse(waiting.nextAttemptAt) - api.context.clock();
  t.ok(pause >= 5_000 && pause <= 6_000);
  api.advance(6_000);
  await api.worker.idle();
  const [parked] = (await api.manage('GET', path)).json.data;
  t.match(parked, { status: 'parked', attemptCount: 2, nextAttemptAt: null });
  t.equal(parked.attempts.length, 2);
  api.advance(60_000);
  await api.worker.idle();
  t.equal(hook.received.length, 2, 'a parked delivery is not sent again');

  status = 204;
  const redelivered = await api.manage('POST', `${path}/${parked.id}/redeliver`);
  t.equal(redelivered.status, 200);
  t.match(redelivered.json.data, { id: parked.id, status: 'pending', nextAttemptAt: String });
  await api.worker.idle();
  await asIfPublic(api);
  const [delivered] = (await api.manage('GET', path)).json.data;
  t.match(delivered, {
    id: parked.id,
    status: 'delivered',
    attemptCount: 3,
    attempts: [{}, {}, { statusCode: 204 }],
  });
  t.equal(new Set(hook.received.map(({ text }) => text)).size, 1, 'every attempt sends the same bytes');
  t.same(new Set(hook.received.map(({ headers }) => headers['webhook-id'])), new Set([parked.id]));

  await api.manage('POST', `${path}/${parked.id}/redeliver`);
  await api.worker.idle();
  t.equal(hook.received.length, 4, 'a delivered event can be sent again');
  for (let i = 0; i < 20; i += 1) {
    await api.manage('POST', `${path}/${parked.id}/redeliver`);
    await api.worker.idle();
  }
  const [kept] = (await api.manage('GET', path)).json.data;
  t.equal(kept.attemptCount, 24);
  t.same([kept.attempts.length, kept.attempts[0].number], [20, 5], 'the newest twenty attempts are kept');
});

t.test('GET 200: pages and filters, ordered by an index', async (t) => {
  const api = await eventApi(t);
  const hook = await startReceiver(t);
  const survey = await addSurvey(api);
  const id = await api.addWebhook({ url: hook.url });
  const path = `/api/v1/webhooks/${id}/deliveries`;
  const order: string[] = [];
  for (let i = 0; i < 30; i += 1) {
    order.unshift(await respond(api, survey.id));
    api.advance(1_000);
  }
  const list = async (query: string): Promise<string[]> =>
    (await api.manage('GET', `${path}${query}`)).json.data.map(
      (item: { responseId: string }) => item.responseId,
    );
  t.same(await list(''), order.slice(0, 25));
  t.same(await list('?limit=10&skip=25'), order.slice(25));
  t.same(await list('?limit=1000000'), order);
  t.same(await list('?status=delivered&limit=2'), order.slice(0, 2));
  t.same(await list('?status=parked'), []);
  for (const query of ['?limit=0', '?limit=x', '?skip=-1', '?status=lost']) {
    t.equal((await api.manage('GET', `${path}${query}`)).status, 400, query);
  }
  const [query] = await queriesOf(api.context.db, (db) =>
    listDeliveries(db, id, { page: { limit: 25, skip: 0 }, status: null }),
  );
  if (query === undefined) throw new Error('no query');
  const plan = await planOf(api.context.db, query);
  t.match(plan[0], /SEARCH deliveries USING INDEX deliveries_list \(webhookId=\?\)/);
  t.notMatch(plan.join(), /TEMP B-TREE/);
});

t.test('404: unknown deliveries; 401: those of other workspaces', async (t) => {
  const api = await eventApi(t);
  const id = await api.addWebhook({ url: 'http://127.0.0.1:1/' });
  const other = await api.addWebhook({ url: 'http://127.0.0.1:1/' });
  const survey = await addSurvey(api);
  await respond(api, survey.id);
  const [{ id: deliveryId }] = (await api.manage('GET', `/api/v1/webhooks/${id}/deliveries`)).json.data;
  await api.addWorkspace('ws2');
  const stranger = await api.addKey({ ws2: 'manage' });
  const reader = await api.addKey({ ws1: 'read' });
  const routes = [
    ['GET', `/api/v1/webhooks/${id}/deliveries`, 200],
    ['POST', `/api/v1/webhooks/${id}/deliveries/${deliveryId}/redeliver`, 401],
    ['POST', `/api/v1/webhooks/${id}/test`, 401],
  ] as const;
  for (const [method, path, forReader] of routes) {
    t.equal((await api.client(method, path)).status, 401, `${method} without a key`);
    t.match((await api.client(method, path, undefined, { 'x-api-key': stranger })).json, {
      code: 'unauthorized',
    });
    t.equal((await api.client(method, path, undefined, { 'x-api-key': reader })).status, forReader);
    const missing = await api.manage(method, path.replace(id, 'nothing'));
    t.match(missing.json, {
      code: 'not_found',
      details: { resource_type: 'Webhook', resource_id: 'nothing' },
    });
  }
  for (const path of [
    `/api/v1/webhooks/${id}/deliveries/nothing/redeliver`,
    `/api/v1/webhooks/${id}/deliveries/No-Id/redeliver`,
    `/api/v1/webhooks/${other}/deliveries/${deliveryId}/redeliver`,
  ]) {
    const reply = await api.manage('POST', path);
    t.equal(reply.status, 404);
    t.match(reply.json, { message: 'Delivery not found', details: { resource_type: 'Delivery' } });
  }
});

t.test('POST redeliver 200: a running delivery stays with its worker', async (t) => {
  const api = await eventApi(t);
  let refuse = (): void => undefined;
  const hook = await startReceiver(t, (response) => {
    refuse = () => void response.writeHead(503).end();
  });
  const survey = await addSurvey(api);
  const id = await api.addWebhook({ url: hook.url });
  await api.client('POST', '/api/v1/client/ws1/responses', {
    surveyId: survey.id,
    finished: false,
    data: {},
  });
  while (hook.received.length === 0) await new Promise(setImmediate);
  const path = `/api/v1/webhooks/${id}/deliveries`;
  const [{ id: deliveryId, nextAttemptAt }] = (await api.manage('GET', path)).json.data;
  const reply = await api.manage('POST', `${path}/${deliveryId}/redeliver`);
  t.equal(reply.status, 200);
  t.equal(reply.json.data.nextAttemptAt, nextAttemptAt);
  refuse();
  await api.worker.idle();
  t.equal(hook.received.length, 1);
});

t.test('POST test 200: sends exactly the test body, signed, and returns the result', async (t) => {
  const api = await eventApi(t);
  const secret = `whsec_${Buffer.alloc(32, 9).toString('base64')}`;
  const hook = await startReceiver(t, (response) => response.writeHead(202).end('ok'));
  const id = await api.addWebhook({ url: hook.url, secret });
  const reply = await api.manage('POST', `/api/v1/webhooks/${id}/test`);
  t.equal(reply.status, 200);
  t.match(reply.json.data, { isDelivered: true, statusCode: null, reply: 'hidden', error: null });
  const [received] = hook.received;
  t.equal(received?.text, '{"event":"testEndpoint"}');
  const key = new Webhook(secret);
  const time = new Date(Number(received?.headers['webhook-timestamp']) * 1_000);
  t.equal(
    received?.headers['webhook-signature'],
    key.sign(String(received?.headers['webhook-id']), time, String(received?.text)),
  );
  hook.close();
  const failed = await api.manage('POST', `/api/v1/webhooks/${id}/test`);
  t.match(failed.json.data, { isDelivered: false, statusCode: null, reply: 'hidden', error: null });
});

t.test('POST test 200: a refused target is reported', async (t) => {
  const api = await eventApi(t);
  await addStrangers(api);
  const id = await api.addWebhook({ url: 'http://127.0.0.1:1/', workspaceId: 'foreign' });
  await api.context.db.updateTable('apiKeyPermissions').set({ workspaceId: 'foreign' }).execute();
  const reply = await api.manage('POST', `/api/v1/webhooks/${id}/test`);
  t.match(reply.json.data, { isDelivered: false, error: /must not point to private/ });
});

t.test(
  'an organization other than the operator’s cannot use the operator’s list of private targets',
  async (t) => {
    const api = await startEventApi(t, {
      env: { WEBHOOK_ATTEMPTS: '1', WEBHOOK_ALLOWED_TARGETS: '127.0.0.0/8' },
    });
    await addStrangers(api);
    const hook = await startReceiver(t, (response) => response.writeHead(200).end('secret'));
    const mine = await api.addWebhook({ url: hook.url });
    const theirs = await api.addWebhook({ url: hook.url, workspaceId: 'foreign' });
    const survey = await addSurvey(api);
    await respond(api, survey.id);
    t.equal(hook.received.length, 1);
    await api.context.db.updateTable('surveys').set({ workspaceId: 'foreign' }).execute();
    const body = { surveyId: survey.id, finished: false, data: {} };
    t.equal((await api.client('POST', '/api/v1/client/foreign/responses', body)).status, 200);
    await api.worker.idle();
    t.equal(hook.received.length, 1, 'no further request arrives');
    await api.context.db
      .insertInto('apiKeyPermissions')
      .values(await foreignPermission(api))
      .execute();
    t.match((await api.manage('GET', `/api/v1/webhooks/${theirs}/deliveries`)).json.data, [
      { status: 'parked', attempts: [{ statusCode: null, error: /must not point to private/ }] },
    ]);
    t.match((await api.manage('GET', `/api/v1/webhooks/${mine}/deliveries`)).json.data, [
      { status: 'delivered' },
    ]);
    const made = (id: string) =>
      api.manage('POST', '/api/v1/webhooks', {
        workspaceId: id,
        url: hook.url,
        triggers: ['responseCreated'],
      });
    t.equal((await made('ws1')).status, 200);
    const refused = await made('foreign');
    t.equal(refused.status, 400);
    t.match(refused.json, { details: { url: /must not point to private/ } });
    const v2 = { name: null, url: hook.url, source: 'user', triggers: ['responseCreated'], surveyIds: [] };
    for (const [method, path, body] of [
      ['PUT', `/api/v1/webhooks/${theirs}`, { url: hook.url }],
      ['POST', '/api/v2/management/webhooks', { ...v2, workspaceId: 'foreign' }],
      ['PUT', `/api/v2/management/webhooks/${theirs}`, v2],
    ] as const) {
      const reply = await api.manage(method, path, body);
      t.equal(reply.status, 400, `${method} ${path}`);
      t.match(reply.text, /must not point to private/);
    }
    t.equal((await api.manage('PUT', `/api/v1/webhooks/${mine}`, { url: hook.url })).status, 200);
  },
);

/** Creates an organization as sign-up does, with a workspace named `foreign`. */
async function addStrangers(api: EventApi): Promise<void> {
  const createdAt = new Date(api.context.clock()).toISOString();
  await api.addWorkspace('foreign');
  const row = {
    id: 'strangers',
    name: 'Strangers',
    isOperators: 0,
    createdAt,
    updatedAt: createdAt,
  } as const;
  await api.context.db.insertInto('organizations').values(row).execute();
  await api.context.db
    .updateTable('workspaces')
    .set({ organizationId: row.id })
    .where('id', '=', 'foreign')
    .execute();
}

async function foreignPermission(api: EventApi) {
  const { id } = await api.context.db.selectFrom('apiKeys').select('id').executeTakeFirstOrThrow();
  return { apiKeyId: id, workspaceId: 'foreign', permission: 'manage' } as const;
}

t.test('POST test 400 for Discord, 409 for a second test at the same time', async (t) => {
  const api = await eventApi(t);
  const discord = await api.addWebhook({ url: 'https://discord.com/api/webhooks/1/x' });
  t.equal((await api.manage('POST', `/api/v1/webhooks/${discord}/test`)).status, 400);
  let refuse = (): void => undefined;
  const hook = await startReceiver(t, (response) => {
    refuse = () => void response.writeHead(503).end();
  });
  const id = await api.addWebhook({ url: hook.url });
  const first = api.manage('POST', `/api/v1/webhooks/${id}/test`);
  while (hook.received.length === 0) await new Promise(setImmediate);
  t.equal((await api.manage('POST', `/api/v1/webhooks/${id}/test`)).status, 409);
  refuse();
  t.match((await first).json.data, { isDelivered: false });
});
