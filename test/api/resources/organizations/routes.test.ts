/** Members see their organizations. Owners and managers rename them. */
import t from 'tap';
import { apiKey, startApi } from '#test/support/api-app.ts';
import { logInOwner, openBrowser } from '#test/support/login.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const api = await startApi(t);
const url = '/api/v1/organizations';
const id = await firstOrganization(api);
const owner = await logInOwner(api);
const member = await addPerson(api, 'Member', 'member');

t.test('GET 200: the organizations of the caller, with the role', async (t) => {
  t.match((await owner.call('GET', url)).json, { data: [{ id, name: 'My organization', role: 'owner' }] });
  t.match((await member.browser.call('GET', url)).json, { data: [{ id, role: 'member' }] });
  const outsider = await addPerson(api, 'Outsider', null);
  t.same((await outsider.browser.call('GET', url)).json, { data: [] });
});

t.test('PUT 200: owners and managers rename it', async (t) => {
  const reply = await owner.call('PUT', `${url}/${id}`, { name: ' Acme & Sons ' });
  t.equal(reply.status, 200);
  t.match(reply.json.data, { id, name: 'Acme & Sons', role: 'owner' });
  t.match((await owner.call('GET', url)).json.data, [{ name: 'Acme & Sons' }]);
});

t.test('400: a bad name; 401 and 404: no access', async (t) => {
  for (const name of ['', '  ', 'https://evil.example/<b>', 'x'.repeat(251), 7]) {
    const reply = await owner.call('PUT', `${url}/${id}`, { name });
    t.equal(reply.status, 400);
    t.match(reply.json, { details: { name: String } });
  }
  t.equal((await member.browser.call('PUT', `${url}/${id}`, { name: 'Mine' })).status, 401);
  t.equal((await owner.call('PUT', `${url}/foreign`, { name: 'Mine' })).status, 404);
  t.equal((await openBrowser(api).call('GET', url)).status, 401);
  t.equal(
    (await api.client('GET', url, undefined, { 'x-api-key': apiKey })).status,
    401,
    'a key cannot list organizations',
  );
});
