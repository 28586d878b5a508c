/**
 * Owners and managers have all rights in the workspaces of their organization, and other people have none. A key has the
 * rights that it was made with.
 */
import t from 'tap';
import type { Permission } from '#api/auth/principal.ts';
import type { Operation, Sent } from '#test/support/description.ts';
import { addOrganization, addPerson, type Person } from '#test/support/people.ts';
import { startDescribedApi } from '../docs/described-api.ts';
import { successOf } from '../docs/successes.ts';

const described = await startDescribedApi(t);
const { api, operations, tidy, world } = described;
t.beforeEach(tidy);

/** These routes are about the caller or about an organization. They have tests of their own. */
const ABOUT_PEOPLE =
  /^\/(account|api\/(auth\/|v1\/(me|management\/me|integrations|license|profile|organizations)))/;
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
    t.equal((await person.browser.call('GET', '/api/v1/me')).status, 200, 'the person can still log in');
  });
}

t.test('a manager sees and changes everything', async (t) => {
  const person = await addPerson(api, 'Chief', 'manager');
  for (const operation of ofWorkspaces) {
    const { status, text } = await send(person, operation);
    t.ok(status < 300, `${operation.name}: ${status} ${text}`);
  }
});

/** These routes answer every key, with what it can see. */
const FOR_ANY_KEY = /^GET \/api\/(v1\/(management\/)?me|v2\/me)$/;
/** This GET makes links with which somebody may write. */
const NEEDS_WRITE = /^GET .*\/singleUseIds$/;
const NEEDS_MANAGE = /^(DELETE |PUT \/api\/v1\/management\/workspaces)/;

function rightFor({ method, name }: Operation): Permission {
  if (NEEDS_MANAGE.test(name)) return 'manage';
  return method === 'GET' && !NEEDS_WRITE.test(name) ? 'read' : 'write';
}

t.test('each operation needs the documented right of a key', async (t) => {
  const { workspaceId } = world.options;
  const levels = ['read', 'write', 'manage'] as const;
  const forKeys = operations.filter(({ credentials }) => credentials.includes('apiKey'));
  t.ok(forKeys.length > 80, `${forKeys.length} operations`);
  for (const level of levels) {
    const key = await api.addKey({ [workspaceId]: level });
    for (const operation of forKeys) {
      const request = await successOf(described, operation);
      const { status, text } = await world.options.send({ ...request, headers: { 'x-api-key': key } });
      const isEnough = levels.indexOf(level) >= levels.indexOf(rightFor(operation));
      if (isEnough) t.ok(status < 300, `${level}: ${operation.name}: ${status} ${text.slice(0, 200)}`);
      else t.ok(REFUSED.includes(status), `${level}: ${operation.name}: ${status}`);
      await tidy();
    }
  }
});

t.test('a key of another organization neither sees nor changes anything', async (t) => {
  const key = await addOrganization(api, 'ws2');
  for (const operation of operations.filter(({ credentials }) => credentials.includes('apiKey'))) {
    if (FOR_ANY_KEY.test(operation.name)) continue;
    const request = await successOf(described, operation);
    const { status, text } = await world.options.send({ ...request, headers: { 'x-api-key': key } });
    if (status === 200) t.notMatch(text, `"${world.options.workspaceId}"`, operation.name);
    else t.ok(REFUSED.includes(status), `${operation.name}: ${status}`);
    if (operation.method !== 'GET') t.not(status, 200, operation.name);
    await tidy();
  }
});

t.test('a key keeps its own permissions', async (t) => {
  await api.client('POST', `/api/v1/client/${world.options.workspaceId}/user`, { userId: 'u1' });
  t.ok((await api.manage('GET', '/api/v1/management/contacts')).json.data.length > 0);
});
