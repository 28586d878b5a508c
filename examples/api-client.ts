// A client of the survey API. "openapi-typescript $BASE/api/docs/openapi.json -o floodgate.d.ts" writes its types.
import createClient from 'openapi-fetch';
import type { components, paths } from './floodgate.d.ts';

const { BASE = '', KEY = '', WORKSPACE = '', HOOK = '' } = process.env;
const client = createClient<paths>({ baseUrl: BASE, headers: { 'x-api-key': KEY } });

const webhook = await client.POST('/api/v1/webhooks', {
  body: { workspaceId: WORKSPACE, url: HOOK, triggers: ['responseFinished'] },
});
if (webhook.error) throw new Error(webhook.error.message);

const made = await client.POST('/api/v1/management/surveys', {
  body: {
    workspaceId: WORKSPACE,
    name: 'Quick start',
    type: 'link',
    status: 'inProgress',
    questions: [{ id: 'q1', type: 'openText', headline: { default: 'What?' } }],
  },
});
if (made.error) throw new Error(made.error.message);
const survey: components['schemas']['Survey'] = made.data.data;

const answered = await client.POST('/api/v1/client/{workspaceId}/responses', {
  params: { path: { workspaceId: WORKSPACE } },
  body: { surveyId: survey.id, finished: true, data: { q1: 'This' } },
});
if (answered.error) throw new Error(answered.error.message);

const list = await client.GET('/api/v1/management/responses', {
  params: { query: { surveyId: survey.id, limit: 10 } },
});
if (list.error) throw new Error(list.error.message);
const [response] = list.data.data;

const missing = await client.GET('/api/v1/management/surveys/{surveyId}', {
  params: { path: { surveyId: 'c0000000000000000000000000' } },
});

console.log(
  JSON.stringify({
    webhookId: webhook.data.data.id,
    secret: webhook.data.data.secret,
    surveyId: survey.id,
    responseId: answered.data.data.id,
    answer: response?.data.q1,
    missing: missing.error?.message,
  }),
);
