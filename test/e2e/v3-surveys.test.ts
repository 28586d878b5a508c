/**
 * A program that creates its surveys on v3, like a published load test: create, answer, list, clean up, against the
 * product.
 */
import t from 'tap';
import type { Json } from '#test/support/json.ts';
import { sharedStack } from '#test/support/stack.ts';

const stack = await sharedStack();
const { apiKey, origin, workspaceId } = stack;

async function call(method: string, path: string, body?: unknown): Promise<{ reply: Response; json: Json }> {
  const reply = await fetch(origin + path, {
    method,
    headers: { 'x-api-key': apiKey, 'content-type': 'application/json', 'x-request-id': 'rig-1' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { reply, json: text === '' ? null : JSON.parse(text) };
}

const document = {
  workspaceId,
  name: 'Load test',
  type: 'link',
  status: 'inProgress',
  defaultLanguage: 'en-US',
  languages: [{ code: 'en-US', default: true, enabled: true }],
  welcomeCard: { enabled: false },
  blocks: [
    {
      name: 'Main',
      elements: [
        {
          id: 'satisfaction',
          type: 'openText',
          headline: { 'en-US': 'How was it?' },
          required: false,
          inputType: 'text',
          charLimit: { enabled: false },
        },
      ],
    },
  ],
  endings: [],
  hiddenFields: { enabled: false },
  variables: [],
};

t.test('a survey from its creation to its end', async (t) => {
  const made = await call('POST', '/api/v3/surveys', document);
  t.equal(made.reply.status, 201, JSON.stringify(made.json));
  t.equal(made.reply.headers.get('x-request-id'), 'rig-1');
  const { id } = made.json.data;
  t.equal(made.reply.headers.get('location'), `/api/v3/surveys/${id}`);

  const answer = { surveyId: id, finished: true, data: { satisfaction: 'good' } };
  const created = await call('POST', `/api/v2/client/${workspaceId}/responses`, answer);
  t.equal(created.reply.status, 200, JSON.stringify(created.json));
  const listed = await call('GET', `/api/v2/management/responses?surveyId=${id}&limit=10`);
  t.match(listed.json.data, [{ id: created.json.data.id, surveyId: id, data: { satisfaction: 'good' } }]);
  const found = await call('GET', `/api/v3/surveys?workspaceId=${workspaceId}&filter[name][contains]=load`);
  t.match(found.json.data, [{ id, responseCount: 1, completedResponseCount: 1 }]);

  const patched = await call('PATCH', `/api/v3/surveys/${id}`, { status: 'completed' });
  t.match(patched.json.data, { id, status: 'completed', name: 'Load test' });
  const closed = await call('POST', `/api/v2/client/${workspaceId}/responses`, answer);
  t.equal(closed.reply.status, 403);
  t.equal((await call('DELETE', `/api/v3/surveys/${id}`)).reply.status, 204);
  const gone = await call('GET', `/api/v3/surveys/${id}`);
  t.equal(gone.reply.status, 403);
  t.match(gone.reply.headers.get('content-type'), 'application/problem+json');
});

t.test('a document with a mistake: validate names it, and creating it is refused', async (t) => {
  const { name: _, ...nameless } = document;
  const checked = await call('POST', '/api/v3/surveys/validate', { operation: 'create', data: nameless });
  t.match(checked.json.data, { valid: false, invalid_params: [{ name: 'name', reason: 'Required' }] });
  const refused = await call('POST', '/api/v3/surveys', nameless);
  t.equal(refused.reply.status, 400);
  t.match(refused.json, { detail: 'Invalid survey document', instance: '/api/v3/surveys' });
});
