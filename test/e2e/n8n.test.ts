/**
 * The sequence of an n8n workflow through the gateway. It is written from documentation, not recorded.
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
