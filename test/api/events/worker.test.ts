/** From a response to the receiver: what arrives, what is tried again, and who waits for whom. */
import t from 'tap';
import { addSurvey } from '#test/support/api-app.ts';
import { startEventApi, startReceiver } from './support.ts';

t.test('a receiver gets what the contract says, and only what it asked for', async (t) => {
  const api = await startEventApi();
  t.teardown(() => api.close());
  const all = await startReceiver();
  const finished = await startReceiver();
  const other = await startReceiver();
  for (const receiver of [all, finished, other]) t.teardown(() => receiver.close());
  const survey = await addSurvey(api);
  const triggers = ['responseCreated', 'responseUpdated', 'responseFinished'];
  const id = await api.addWebhook({ url: all.url, triggers });
  await api.addWebhook({ url: finished.url, triggers: ['responseFinished'], surveyIds: [survey.id] });
  await api.addWebhook({ url: other.url, triggers, surveyIds: ['another'] });
  await api.addWorkspace('ws2');
  await api.addWebhook({ url: other.url, triggers, workspaceId: 'ws2' });

  const created = await api.client('POST', '/api/v1/client/ws1/responses', {
    surveyId: survey.id,
    finished: false,
    data: { q1: 'Yes' },
  });
  t.equal(created.status, 200);
  await api.worker.idle();
  t.same(
    all.received.map(({ json }) => json.event),
    ['responseCreated'],
  );
  await api.client('PUT', `/api/v1/client/ws1/responses/${created.json.data.id}`, {
    finished: true,
    data: {},
  });
  await api.worker.idle();
  t.same(all.received.map(({ json }) => json.event).sort(), [
    'responseCreated',
    'responseFinished',
    'responseUpdated',
  ]);
  t.same(
    finished.received.map(({ json }) => json.event),
    ['responseFinished'],
  );
  t.equal(other.received.length, 0);
  const [first] = all.received;
  t.match(first?.json, {
    webhookId: id,
    event: 'responseCreated',
    data: {
      id: created.json.data.id,
      notes: [],
      person: null,
      survey: { title: 'Survey', status: 'inProgress' },
    },
  });
});
