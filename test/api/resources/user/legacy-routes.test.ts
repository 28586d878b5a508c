import t from 'tap';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const client = `/api/v1/client/${workspaceId}`;
const identifyPaths = ['identify/contacts', 'identify/people', 'app/people'];
const put = (userId: string, attributes: unknown, name = 'contacts') =>
  api.client('PUT', `${client}/${name}/${encodeURIComponent(userId)}/attributes`, { attributes });

t.test('GET identify 200: creates the contact, on every alias of the path', async (t) => {
  const survey = await addSurvey(api, { type: 'app' });
  let known: string | null = null;
  for (const name of identifyPaths) {
    const reply = await api.client('GET', `${client}/${name}/old%40example.com`);
    t.equal(reply.status, 200);
    const { contactId } = reply.json.data;
    t.strictSame(reply.json, {
      data: {
        contactId,
        userId: 'old@example.com',
        segments: [survey.segment.id],
        displays: [],
        responses: [],
        lastDisplayAt: null,
      },
    });
    t.equal(contactId, known ?? contactId);
    known = contactId;
  }
});

t.test('PUT attributes 200: tells whether anything changed, and which attributes were ignored', async (t) => {
  await api.client('GET', `${client}/identify/contacts/u1`);
  for (const [name, plan] of [
    ['contacts', 'pro'],
    ['people', 'free'],
  ] as const) {
    const first = await put('u1', { plan }, name);
    t.equal(first.status, 200);
    t.strictSame(first.json, { data: { changed: true, message: 'The attributes were updated' } });
    t.strictSame((await put('u1', { plan }, name)).json.data, {
      changed: false,
      message: 'There was nothing to update',
    });
  }
  t.match((await put('u1', { 'Bad Key': 'x' })).json.data, { changed: false, messages: [/Bad Key/] });
});

t.test('PUT attributes 404: does not create a contact, only identify does', async (t) => {
  const reply = await put('nobody', { plan: 'pro' });
  t.equal(reply.status, 404);
  t.strictSame(reply.json, {
    code: 'not_found',
    message: 'contact not found',
    details: { resource_id: 'nobody', resource_type: 'contact' },
  });
});

t.test('400 and 404', async (t) => {
  t.match((await put('u1', undefined)).json.details, { attributes: 'Required' });
  t.equal((await put('u1', { plan: [] })).status, 400);
  t.equal((await put('u1', { email: 'no' })).json.message, 'Invalid email format');
  for (const name of identifyPaths) {
    const reply = await api.client('GET', `${client}/${name}/${'u'.repeat(256)}`);
    t.equal(reply.status, 400);
    t.match(reply.json.details, { userId: String });
    t.match(await api.client('GET', `${client}/${name}/a%00b`), { status: 400, json: { message: /NUL/ } });
  }
  const unknown = await api.client('GET', '/api/v1/client/nope/identify/contacts/u1');
  t.equal(unknown.status, 404);
  t.equal(unknown.json.details.resource_type, 'Workspace');
});
