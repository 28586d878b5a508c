/** What replies about webhooks do not show. The rest is in test/conversations/webhooks.md. */
import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const path = '/api/v2/management/webhooks';

t.test('a change keeps the secret, also if a survey of the webhook was deleted', async (t) => {
  const survey = await addSurvey(api);
  const fields = { name: 'To us', url: 'https://hooks.example.com/in', source: 'user' };
  const body = { workspaceId, ...fields, triggers: ['responseFinished'], surveyIds: [survey.id] };
  const { secret, id } = (await api.manage('POST', path, body)).json.data;
  await api.context.db.deleteFrom('surveys').where('id', '=', survey.id).execute();
  const change = { name: 'x', surveyIds: [survey.id], secret: 'mine' };
  t.equal((await api.manage('PUT', `${path}/${id}`, change)).status, 200);
  const row = await api.context.db.selectFrom('webhooks').select('secret').executeTakeFirst();
  t.equal(row?.secret, secret);
});
