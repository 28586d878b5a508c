/** Owners and managers have all rights in the workspaces of their organization, and nobody else has any. */
import t from 'tap';
import type { Operation, Sent } from '#test/support/description.ts';
import { addPerson, type Person } from '#test/support/people.ts';
import { startDescribedApi } from '../docs/described-api.ts';
import { successOf } from '../docs/successes.ts';

const described = await startDescribedApi(t);
const { api, operations, tidy, world } = described;
t.beforeEach(tidy);

/** These routes are about the caller or about an organization. They have tests of their own. */
const ABOUT_PEOPLE =
  /^\/(account|api\/(auth\/|v1\/(me|management\/me|api-keys|integrations|license|profile|organizations)))/;
const ofWorkspaces = operations.filter(
  ({ credentials, path }) => credentials.includes('session') && !ABOUT_PEOPLE.test(path),
);
const REFUSED = [401, 403];

/** Sends a request that would succeed with a key of the workspace. */
async function send({ browser }: Person, operation: Operation): Promise<Sent> {
  const cookie = [...browser.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  return world.options.send({ ...(await successOf(described, operation)), headers: { cookie } });
}

t.test('the test of all routes covers the management API', async (t) => {
  t.ok(ofWorkspaces.length > 50, `${ofWorkspaces.length} operations`);
});

for (const [name, role] of [
  ['Earlier', 'member'],
  ['Outsider', null],
] as const) {
  t.test(`with the role ${role}, a person can neither see nor change anything`, async (t) => {
    const person = await addPerson(api, name, role);
    for (const operation of ofWorkspaces) {
      const { status, text } = await send(person, operation);
      // A list of all workspaces is empty without any.
      if (operation.method === 'GET' && !operation.path.includes('{') && status === 200) {
        t.strictSame(JSON.parse(text), { data: [] }, operation.name);
      } else {
        t.ok(REFUSED.includes(status), `${operation.name}: ${status}`);
      }
    }
    t.match(await person.browser.call('GET', '/api/v1/management/responses'), {
      status: 401,
      json: { code: 'unauthorized' },
    });
    t.equal((await person.browser.call('GET', '/api/v1/api-keys')).status, 401);
    t.equal((await person.browser.call('GET', '/api/v1/me')).status, 200, 'the person can still log in');
  });
}

t.test('a manager sees and changes everything', async (t) => {
  const person = await addPerson(api, 'Chief', 'manager');
  for (const operation of ofWorkspaces) {
    const { status, text } = await send(person, operation);
    t.ok(status < 300, `${operation.name}: ${status} ${text}`);
  }
  t.equal((await person.browser.call('GET', '/api/v1/api-keys')).status, 200);
});

t.test('a key keeps its own permissions', async (t) => {
  await api.client('POST', `/api/v1/client/${world.options.workspaceId}/user`, { userId: 'u1' });
  t.ok((await api.manage('GET', '/api/v1/management/contacts')).json.data.length > 0);
});
