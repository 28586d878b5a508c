/**
 * Sequences of published clients through the gateway: an n8n workflow, and a load test. They are written from
 * documentation, not recorded.
 */
import { createHmac } from 'node:crypto';
import t from 'tap';
import { startReceiver } from '#test/api/events/support.ts';
import { surveyBody } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';
import { sharedStack } from '#test/support/stack.ts';
import { until } from '#test/support/until.ts';

const receiver = await startReceiver(t);
const stack = await sharedStack();
const { origin, workspaceId, apiKey } = stack;

async function call(method: string, path: string, body?: unknown): Promise<{ status: number; json: Json }> {
  const reply = await fetch(origin + path, {
    method,
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json', accept: 'application/json' },
    redirect: 'error',
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: reply.status, json: await reply.json() };
}

const made = await call('POST', '/api/v1/management/surveys', surveyBody({ workspaceId }));
const surveyId: string = made.json.data.id;

for (const [version, path, created] of [
  ['v1', '/api/v1/webhooks', 200],
  ['v2', '/api/v2/management/webhooks', 201],
] as const) {
  t.test(
    `n8n on ${version}: tests the credentials, looks for its webhook, creates it, gets an event, removes it`,
    async (t) => {
      t.equal((await call('GET', '/api/v1/me')).status, 200);
      const isOurs = ({ url, surveyIds }: { url: string; surveyIds: string[] }) =>
        url === receiver.url && surveyIds.every((id) => id === surveyId);
      t.notOk((await call('GET', path)).json.data.some(isOurs), 'no webhook exists yet');

      // The request names no workspace, because its key has access to only one.
      const hook = await call('POST', path, {
        url: receiver.url,
        triggers: ['responseCreated', 'responseFinished'],
        source: 'n8n',
        name: `n8n ${version}`,
        surveyIds: [surveyId],
      });
      t.equal(hook.status, created);
      t.match(hook.json.data, { source: 'n8n', surveyIds: [surveyId], workspaceId, secret: /^whsec_/ });
      const { id, secret } = hook.json.data;
      t.ok((await call('GET', path)).json.data.some(isOurs), 'the second look finds the webhook');

      receiver.received.length = 0;
      const body = { surveyId, finished: true, data: { q1: `to ${version}` } };
      const answered = await call('POST', '/api/v2/management/responses', body);
      await until(() => receiver.received.length === 2, 'both events are delivered', stack.api);
      t.strictSame(receiver.received.map(({ json }) => json.event).sort(), [
        'responseCreated',
        'responseFinished',
      ]);
      for (const { headers, json, text } of receiver.received) {
        t.match(json, { webhookId: id, data: { id: answered.json.data.id, surveyId, data: body.data } });
        const signed = `${headers['webhook-id']}.${headers['webhook-timestamp']}.${text}`;
        const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
        t.equal(
          headers['webhook-signature'],
          `v1,${createHmac('sha256', key).update(signed).digest('base64')}`,
        );
      }

      t.equal((await call('DELETE', `${path}/${id}`, {})).status, 200, 'a body is ignored');
      t.equal((await call('GET', `${path}/${id}`)).status, 404);
    },
  );
}

t.test('a webhook is renamed and given to another integration', async (t) => {
  const path = '/api/v2/management/webhooks';
  const fields = {
    workspaceId,
    name: 'Test',
    url: receiver.url,
    source: 'user',
    triggers: ['responseFinished'],
    surveyIds: [surveyId],
  };
  const { id } = (await call('POST', path, fields)).json.data;
  const listed = await call('GET', `${path}?surveyIds=${surveyId}`);
  t.ok(listed.json.data.some((one: { id: string }) => one.id === id));
  const changed = await call('PUT', `${path}/${id}`, { ...fields, name: 'Changed', source: 'zapier' });
  t.match(changed, { status: 200, json: { data: { ...fields, name: 'Changed', source: 'zapier' } } });
  t.match(await call('DELETE', `${path}/${id}`), { status: 200, json: { data: { id } } });
});

t.test('a load test writes responses, lists them in pages, changes and deletes them', async (t) => {
  const path = '/api/v2/management/responses';
  const { id: ownSurvey } = (await call('POST', '/api/v1/management/surveys', surveyBody({ workspaceId })))
    .json.data;
  const written = await Promise.all(
    Array.from({ length: 20 }, (_, i) =>
      call('POST', path, { surveyId: ownSurvey, finished: i % 2 === 0, data: { q1: `answer ${i}` } }),
    ),
  );
  t.strictSame([...new Set(written.map(({ status }) => status))], [201]);
  const pages = [];
  for (const skip of [0, 8, 16]) {
    pages.push(await call('GET', `${path}?surveyId=${ownSurvey}&limit=8&skip=${skip}&order=asc`));
  }
  t.strictSame(
    pages.flatMap(({ json }) => json.data.map(({ id }: { id: string }) => id)).sort(),
    written.map(({ json }) => json.data.id).sort(),
    'the pages have every response once',
  );
  t.strictSame(pages[2]?.json.meta, { total: 20, limit: 8, offset: 16 });
  const [first] = pages[0]?.json.data ?? [];
  const changed = await call('PUT', `${path}/${first.id}`, { ...first, finished: true, data: { q1: 'new' } });
  t.match(changed, { status: 200, json: { data: { finished: true, data: { q1: 'new' } } } });
  t.equal((await call('DELETE', `${path}/${first.id}`)).status, 200);
  t.equal((await call('GET', `${path}?surveyId=${ownSurvey}&limit=1`)).json.meta.total, 19);
});
