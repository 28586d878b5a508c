/** What one caller at a time does not show. test/conversations/accounts.md has the requests and replies of workspaces. */
import t from 'tap';
import { startApi } from '#test/support/api-app.ts';
import { logInOwner } from '#test/support/login.ts';
import { addPerson, firstOrganization } from '#test/support/people.ts';

const api = await startApi(t);
await api.addWorkspace('ws2');
const url = '/api/v1/management/workspaces';

t.test('PUT: two concurrent calls keep each other’s changes', async (t) => {
  const owner = await logInOwner(api);
  await Promise.all([
    owner.call('PUT', `${url}/ws2`, { recontactDays: 3 }),
    owner.call('PUT', `${url}/ws2`, { styling: { one: 1 } }),
    owner.call('PUT', `${url}/ws2`, { styling: { two: 2 } }),
  ]);
  const { data } = (await owner.call('GET', url)).json;
  t.match(data[1], { id: 'ws2', recontactDays: 3, styling: { one: 1, two: 2 } });
});

t.test('only a person who runs the organization creates one', async (t) => {
  const member = await addPerson(api, 'Earlier', 'member');
  const made = `/api/v1/organizations/${await firstOrganization(api)}/workspaces`;
  t.equal((await member.browser.call('POST', made, { name: 'Mine' })).status, 404);
});
