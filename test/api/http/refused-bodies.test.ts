/** A body that breaks a limit gets the reason on every surface that takes bodies. Only what is not JSON is called malformed. */
import t from 'tap';
import { startApi, workspaceId } from '#test/support/api-app.ts';

const api = await startApi(t);
const keys = Object.fromEntries(Array.from({ length: 10_001 }, (_, i) => [`k${i}`, 0]));
const bodies = [
  ['too many keys', JSON.stringify(keys), 'The body has more than 10000 different keys'],
  ['too many values', `{"data":[${'0,'.repeat(100_001)}0]}`, 'The body has more than 100000 values'],
  ['too deep', `{"data":${'['.repeat(200) + ']'.repeat(200)}}`, 'The body is nested deeper than 100 levels'],
  ['NUL', '{"name":"a\\u0000"}', 'The body contains a NUL character'],
  ['a key', '{"__proto__":1}', 'The key "__proto__" is not allowed'],
] as const;

for (const [name, body, reason] of bodies) {
  t.test(`400: ${name}`, async (t) => {
    const v1 = { code: 'bad_request', message: reason, details: { error: reason } };
    const client = await api.client('POST', `/api/v1/client/${workspaceId}/responses`, body);
    t.match(client, { status: 400, json: v1 }, 'client');
    const v2Client = await api.client('POST', `/api/v2/client/${workspaceId}/responses`, body);
    t.match(v2Client, { status: 400, json: v1 }, 'client of v2');
    t.match(await api.manage('POST', '/api/v1/management/surveys', body), { status: 400, json: v1 }, 'v1');
    const v2 = { error: { code: 400, message: 'Bad Request', details: [{ field: 'error', issue: reason }] } };
    t.match(await api.manage('POST', '/api/v2/management/webhooks', body), { status: 400, json: v2 }, 'v2');
    t.match(await api.client('POST', '/api/auth/signup', body), { status: 400, json: v1 }, 'accounts');
  });
}

t.test('400: what is not JSON is malformed', async (t) => {
  const malformed = { message: 'Malformed JSON input, please check your request body', details: {} };
  t.match(await api.manage('POST', '/api/v1/management/surveys', '{'), { status: 400, json: malformed });
});
