/**
 * A workspace that was just deleted is like one that never existed, for every operation, while its rows are still there.
 * A route that is added later is included.
 */
import t from 'tap';
import { startDescribedApi } from '#test/api/docs/described-api.ts';
import { successOf } from '#test/api/docs/successes.ts';
import { workspaceId } from '#test/support/api-app.ts';
import type { Operation, Sent } from '#test/support/description.ts';
import { addOrganization, deleteFirstOrganization } from '#test/support/people.ts';
import type { Request } from '#test/support/world.ts';

const described = await startDescribedApi(t);
const { api, operations, world } = described;

/** Ids as `newId` makes them, and that of the workspace. */
const ID = new RegExp(`\\b(c[0-9a-z]{24}|${workspaceId})\\b`, 'g');
/** A person of the organization still knows its id. */
const [{ organizationId }] = await ownWorkspaces();
const isOfWorkspace = (id: string): boolean => id !== organizationId;

async function ownWorkspaces() {
  const reply = await world.options.send({
    method: 'GET',
    url: '/api/v1/management/workspaces',
    headers: { cookie: world.options.session },
  });
  return JSON.parse(reply.text).data;
}

/** The same request with ids that nothing ever had. */
function ofNothing(request: Request): Request {
  const unknown = (text: string): string =>
    text.replace(ID, (id) => (isOfWorkspace(id) ? `${id.slice(0, -1)}${id.endsWith('z') ? 'y' : 'z'}` : id));
  const { body } = request;
  return {
    ...request,
    url: unknown(request.url),
    body: typeof body === 'string' ? unknown(body) : body,
  };
}

const names = ({ url, body }: Request): boolean =>
  [...`${url} ${typeof body === 'string' ? body : ''}`.matchAll(ID)].some(([id]) => isOfWorkspace(id));

/** The status and the kind of error, without the ids that the text repeats. */
function summaryOf({ status, text }: Sent): string {
  const plain = text
    .replaceAll('wsz', workspaceId)
    .replace(ID, 'ID')
    .replaceAll(/("requestId":"|<RequestId>)[\w-]+/g, '');
  return `${status} ${plain}`;
}

/** Operations that answer like this for any id. */
const successful: readonly string[] = [
  'GET /s/{surveyId}',
  'GET /api/v1/management/surveys',
  'GET /api/v1/surveys',
];

const requests: { readonly operation: Operation; readonly request: Request }[] = [];
for (const operation of operations) {
  const request = await successOf(described, operation);
  if (names(request)) requests.push({ operation, request });
}

t.test('every operation on what was in it answers as for what never existed', async (t) => {
  const key = await addOrganization(api, 'second');
  await deleteFirstOrganization(api);
  t.ok(requests.length > 80, `${requests.length} operations`);
  for (const { operation, request } of requests) {
    const headers = request.headers?.['x-api-key'] === undefined ? request.headers : { 'x-api-key': key };
    const one = { ...request, headers };
    const gone = await world.options.send(one);
    const never = await world.options.send(ofNothing(one));
    t.equal(summaryOf(gone), summaryOf(never), operation.name);
    if (!successful.includes(operation.name)) t.ok(gone.status >= 400, `${operation.name}: ${gone.status}`);
  }
  const rows = await api.context.db.selectFrom('surveys').select('id').execute();
  t.ok(rows.length > 0, 'the rows are still there');
});

t.test('lists show nothing of it', async (t) => {
  for (const operation of operations.filter(({ method }) => method === 'GET')) {
    const url = world.urlOf(operation, {});
    if (/[{}]/.test(url)) continue;
    const reply = await world.options.send({
      method: 'GET',
      url,
      headers: { cookie: world.options.session },
    });
    t.notMatch(reply.text, new RegExp(`"${workspaceId}"`), operation.name);
  }
});
