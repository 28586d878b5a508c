import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t, {
  resolve: async (hostname) => {
    if (hostname === 'inside.example') return ['93.184.215.14', '10.0.0.1'];
    if (hostname === 'nowhere.example') throw new Error('ENOTFOUND');
    return ['93.184.215.14'];
  },
});
const path = '/api/v1/webhooks';
await api.addWorkspace('ws2', 'env2');
const both = await api.addKey({ [workspaceId]: 'manage', ws2: 'manage' });
const url = 'https://hooks.example.com/in?x=1';
const send = (fields: Record<string, unknown> = {}) =>
  api.manage('POST', path, { url, triggers: ['responseCreated'], ...fields });
const sendBoth = (fields: Record<string, unknown>) =>
  api.client('POST', path, { url, triggers: ['responseCreated'], ...fields }, { 'x-api-key': both });

t.test('POST 200: without a scope, in the only workspace of the key; a secret of 32 bytes', async (t) => {
  const { data } = (await send()).json;
  t.equal(data.workspaceId, workspaceId);
  t.match(data.secret, /^whsec_[A-Za-z0-9+/]{43}=$/);
  t.equal(Buffer.from(data.secret.slice('whsec_'.length), 'base64').length, 32);
});

t.test('POST 200: stores all known fields; a repetition creates another webhook', async (t) => {
  const fields = {
    environmentId: 'env2',
    name: 'n8n',
    source: 'n8n',
    surveyIds: ['csurvey', 'csurvey'],
    triggers: ['responseFinished', 'responseUpdated', 'responseFinished'],
    secret: 'mine',
    unknown: 1,
  };
  const { data } = (await sendBoth(fields)).json;
  t.match(data, {
    workspaceId: 'ws2',
    environmentId: 'env2',
    name: 'n8n',
    source: 'n8n',
    surveyIds: ['csurvey'],
    triggers: ['responseFinished', 'responseUpdated'],
  });
  t.not(data.secret, 'mine');
  const again = (await sendBoth(fields)).json.data;
  t.not(again.id, data.id);
  t.not(again.secret, data.secret);
});

t.test('POST 400: checks the schema, then the scope, then the target', async (t) => {
  const missing = await api.manage('POST', path, { workspaceId: 'nope' });
  t.match(missing.json.details, { url: 'Required', triggers: 'Required' });
  t.match((await send({ triggers: [] })).json.details, { triggers: String });
  t.match((await send({ triggers: ['responseDeleted'] })).json.details, { 'triggers.0': /must be one of/ });
  t.match((await send({ source: 'x' })).json.details, { source: /must be one of user, zapier/ });
  t.match((await send({ surveyIds: ['No Id'] })).json.details, { 'surveyIds.0': 'Invalid cuid2' });
  t.match((await send({ url: 'no url', workspaceId: 'nope' })).json.details, { url: 'Invalid url' });
  t.equal((await send({ url: 'ftp://x.example', workspaceId: 'nope' })).json.message, 'Workspace not found');
});

t.test('POST 400: forbidden targets', async (t) => {
  const cases: readonly (readonly [string, string])[] = [
    ['ftp://x.example', 'Webhook URL must use HTTPS or HTTP protocol'],
    ['http://localhost:3000', 'Webhook URL must not point to localhost or internal services'],
    ['http://metadata.google.internal/', 'Webhook URL must not point to localhost or internal services'],
    ['http://127.1/', 'Webhook URL must not point to private or internal IP addresses'],
    ['http://[::ffff:10.0.0.1]/', 'Webhook URL must not point to private or internal IP addresses'],
    ['http://inside.example/', 'Webhook URL must not point to private or internal IP addresses'],
    ['http://nowhere.example/', 'Could not resolve webhook URL hostname: nowhere.example'],
  ];
  const before = (await api.manage('GET', path)).json.data.length;
  for (const [target, message] of cases) {
    const reply = await send({ url: target });
    t.equal(reply.status, 400, target);
    t.match(reply.json, { code: 'bad_request', message });
  }
  t.equal((await api.manage('GET', path)).json.data.length, before);
});
