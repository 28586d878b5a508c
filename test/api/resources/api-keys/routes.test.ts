/** Keys and sessions reach what they may; licence and integrations are for sessions. */
import t from 'tap';
import { apiKey, publicUrl, startApi, surveyBody, workspaceId } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { makeKey } from '#test/support/people.ts';

const api = await startApi(t);
const browser = await logInOwner(api);
const surveys = '/api/v1/management/surveys';

t.test('a key for all workspaces reaches later ones too; the database has only its hash', async (t) => {
  const key = await makeKey(browser, ' All ');
  await api.addWorkspace('later');
  const body = { workspaceId: 'later', name: 'new', type: 'code', key: 'new' };
  const url = '/api/v1/management/action-classes';
  t.equal((await api.client('POST', url, body, { 'x-api-key': key })).status, 200);
  t.equal((await api.manage('POST', url, body)).status, 401, 'the first key reaches its workspace only');
  const stored = await api.context.db.selectFrom('apiKeys').selectAll().execute();
  t.notMatch(JSON.stringify(stored), key);
  t.ok(stored.some(({ label }) => label === 'All'));
});

t.test('a page of another origin cannot use the session to make changes', async (t) => {
  const post = (origin: string) => browser.call('POST', surveys, surveyBody(), { origin });
  const refused = await post('https://evil.feedback.example.com');
  t.match(refused, { status: 403, json: { code: 'forbidden', message: /another origin/ } });
  t.equal((await post('null')).status, 403);
  t.equal((await post(publicUrl)).status, 200);
});

t.test('a session can manage like a key; with a key header only the key counts', async (t) => {
  const made = await browser.call('POST', surveys, surveyBody());
  t.equal(made.status, 200);
  const path = `${surveys}/${made.json.data.id}`;
  t.equal((await browser.call('GET', path)).status, 200);
  t.equal((await browser.call('GET', path, undefined, { 'x-api-key': 'wrong' })).status, 401);
  t.equal((await browser.call('GET', '/api/v2/me')).status, 401, 'v2 accepts only keys');
  t.equal((await browser.call('DELETE', path)).status, 200);
});

t.test('licence and integrations report their state', async (t) => {
  const licence = await browser.call('POST', '/api/v1/license/recheck');
  t.match(licence.json, { data: { status: 'not_required', message: /without a licence/ } });
  for (const source of ['zapier', 'zapier', 'n8n']) {
    const hook = { url: 'https://x.example', triggers: ['responseCreated'], source };
    t.equal((await api.manage('POST', '/api/v1/webhooks', hook)).status, 200);
  }
  const { json } = await browser.call('GET', '/api/v1/integrations');
  const known = { workspaceId, lastChangedAt: new Date(api.context.clock()).toISOString() };
  t.strictSame(json.data, [
    { ...known, source: 'n8n', webhookCount: 1 },
    { ...known, source: 'zapier', webhookCount: 2 },
  ]);
  for (const [method, url] of [
    ['GET', '/api/v1/integrations'],
    ['POST', '/api/v1/license/recheck'],
  ] as const) {
    t.equal((await api.client(method, url, undefined, { 'x-api-key': apiKey })).status, 401);
    t.equal((await openBrowser(api).call(method, url)).status, 401);
  }
});
