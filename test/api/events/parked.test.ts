/** Deliveries that fail: what the tables keep of them, and how an operator delivers them again. */
import t from 'tap';
import { addWorkspaceOf, attemptsOf, deliveriesOf, makeDueAgain, startEventApi } from './support.ts';

t.test('a delivery is parked after its last attempt, and the operator can deliver it again', async (t) => {
  const api = await startEventApi(t, { attemptsMax: 2 });
  let status = 503;
  const hook = await api.addHook((response) => response.writeHead(status).end('x'.repeat(2_000)));
  await api.respond();
  await api.worker.idle();
  const [waiting] = await deliveriesOf(api);
  t.match(waiting, { status: 'pending', attemptCount: 1 });
  const reply = 'x'.repeat(1_024);
  t.match(await attemptsOf(api), [{ number: 1, statusCode: 503, reply, error: null }]);
  const pause = Date.parse(waiting?.dueAt ?? '') - api.context.clock();
  t.ok(pause >= 5_000 && pause <= 6_000);
  api.advance(6_000);
  await api.worker.idle();
  t.match(await deliveriesOf(api), [{ status: 'parked', attemptCount: 2, dueAt: null }]);
  api.advance(60_000);
  await api.worker.idle();
  t.equal(hook.received.length, 2, 'a parked delivery is not sent again');

  status = 204;
  const { id = '' } = waiting ?? {};
  await makeDueAgain(api, id);
  await api.worker.idle();
  t.match(await deliveriesOf(api), [{ id, status: 'delivered', attemptCount: 3 }]);
  t.match(await attemptsOf(api), [{}, {}, { statusCode: 204 }]);
  t.equal(new Set(hook.received.map(({ text }) => text)).size, 1, 'every attempt sends the same bytes');
  t.same(new Set(hook.received.map(({ headers }) => headers['webhook-id'])), new Set([id]));
});

t.test('a running delivery stays with its worker', async (t) => {
  const api = await startEventApi(t, { attemptsMax: 2 });
  let refuse = (): void => undefined;
  const hook = await api.addHook((response) => {
    refuse = () => void response.writeHead(503).end();
  });
  await api.respond();
  while (hook.received.length === 0) await new Promise(setImmediate);
  const before = await deliveriesOf(api);
  await makeDueAgain(api, before[0]?.id ?? '');
  t.strictSame(await deliveriesOf(api), before);
  refuse();
  await api.worker.idle();
  t.equal(hook.received.length, 1);
});

t.test('only the organization of the operator can use the list of private targets', async (t) => {
  const api = await startEventApi(t, {
    attemptsMax: 1,
    env: {
      WEBHOOK_ALLOWED_TARGETS: '127.0.0.0/8',
      DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '',
    },
  });
  const { db } = api.context;
  await addWorkspaceOf(api, 'strangers', 'foreign');
  await db.updateTable('organizations').set({ isOperators: 0 }).where('id', '=', 'strangers').execute();
  const { id: apiKeyId } = await db.selectFrom('apiKeys').select('id').executeTakeFirstOrThrow();
  const right = { apiKeyId, workspaceId: 'foreign', permission: 'manage' } as const;
  await db.insertInto('apiKeyPermissions').values(right).execute();
  const hook = await api.addHook((response) => response.writeHead(200).end('secret'));
  const theirs = await api.addWebhook({ url: hook.url, workspaceId: 'foreign' });
  await api.respond();
  await api.worker.idle();
  t.equal(hook.received.length, 1);
  await db.updateTable('surveys').set({ workspaceId: 'foreign' }).execute();
  await api.respond({}, 'foreign');
  await api.worker.idle();
  t.equal(hook.received.length, 1, 'no further request arrives');
  const statusOf = new Map((await deliveriesOf(api)).map(({ webhookId, status }) => [webhookId, status]));
  t.strictSame([statusOf.get(hook.id), statusOf.get(theirs)], ['delivered', 'parked']);
  t.match((await attemptsOf(api)).map(({ error }) => error).join(), 'must not point to private');

  const v2 = { name: null, url: hook.url, source: 'user', triggers: ['responseCreated'], surveyIds: [] };
  for (const [method, path, body] of [
    ['POST', '/api/v1/webhooks', { ...v2, workspaceId: 'foreign' }],
    ['POST', '/api/v2/management/webhooks', { ...v2, workspaceId: 'foreign' }],
    ['PUT', `/api/v2/management/webhooks/${theirs}`, v2],
  ] as const) {
    const reply = await api.manage(method, path, body);
    t.equal(reply.status, 400, `${method} ${path}`);
    t.match(reply.text, /must not point to private/);
  }
  t.equal((await api.manage('POST', '/api/v1/webhooks', { ...v2, workspaceId: 'ws1' })).status, 200);
  t.equal((await api.manage('PUT', `/api/v2/management/webhooks/${hook.id}`, v2)).status, 200);
});
