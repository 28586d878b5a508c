/** Lists requests that succeed where a generated request would not, and operations that succeed in several ways. */
import type { TestApi } from '#test/support/api-app.ts';
import type { Operation, Sent } from '#test/support/description.ts';
import { mailsOf } from '#test/support/mails.ts';
import { protectedForm } from '#test/support/owner.ts';
import { uploadForm } from '#test/support/requests.ts';
import { cookiesOf, type Ids, type Request, type World } from '#test/support/world.ts';

export interface Place {
  readonly api: TestApi;
  readonly world: World;
  readonly operation: Operation;
  readonly ids: Ids;
  readonly request: Request;
}

/** @returns requests to send in sequence */
export type Successes = (place: Place) => Promise<readonly Request[]>;

const environment: Successes = async ({ request, world }) => {
  const { headers } = await world.options.send(request);
  return [request, { ...request, headers: { 'if-none-match': String(headers.etag) } }];
};

/** Returns one of our forms. @param cookie of the sender */
export async function form(
  world: World,
  url: string,
  fields: Readonly<Record<string, string>>,
  cookie = '',
): Promise<Request> {
  return { method: 'POST', url, ...(await protectedForm(world, fields, cookie)) };
}

/** Finds the token in the link of a mail to an address. */
async function mailedToken({ api }: Place, to: string, kind: string): Promise<string> {
  return (await mailsOf(api, kind)).find(({ recipient }) => recipient === to)?.token ?? '';
}

/** Adds the headers of a browser, so the reply is a page. */
function fromBrowser(request: Request): Request {
  return { ...request, headers: { ...request.headers, accept: 'text/html' } };
}

/** Programs get JSON, and senders of a form get the next page. @param fields of the form */
const alsoAsForm =
  (fields: Readonly<Record<string, string>>): Successes =>
  async ({ request, world }) => {
    const email = `${world.unique()}@example.com`;
    return [request, fromBrowser(await form(world, request.url, { email, ...fields }))];
  };

const script: Successes = async ({ request, world }) => {
  const { headers } = await world.options.send(request);
  return [request, { ...request, headers: { 'if-none-match': String(headers.etag) } }];
};

/** Returns a form of the account page, sent by the person who is logged in. */
const accountForm =
  (fields: Readonly<Record<string, string>>): Successes =>
  async ({ request, world }) => [await form(world, request.url, fields, world.options.session)];

const password = 'Password1';

/** Signs a person up who has not opened the link yet. */
async function signUp({ api, world }: Place): Promise<string> {
  const email = `${world.unique()}@example.com`;
  await api.client('POST', '/api/auth/signup', { name: 'Walker', email, password });
  return email;
}

/** Creates an account. @returns the reply to the login */
export async function account(place: Place): Promise<{ readonly email: string; readonly loggedIn: Sent }> {
  const email = await signUp(place);
  const token = await mailedToken(place, email, 'verifyEmail');
  const { world } = place;
  const loggedIn = await world.options.send(
    await form(world, '/api/auth/callback/token', { token, password, json: 'true' }),
  );
  return { email, loggedIn };
}

const ownWorkspace = '/account/workspaces/{workspaceId}/delete';

/** Creates an account. @returns the path to its workspace, the name of that, and the cookie of a session */
export async function withOwnWorkspace(place: Place) {
  const cookie = cookiesOf((await account(place)).loggedIn);
  const { send } = place.world.options;
  const listed = await send({ method: 'GET', url: '/api/v1/management/workspaces', headers: { cookie } });
  const [{ id, name }] = JSON.parse(listed.text).data;
  return { url: ownWorkspace.replace('{workspaceId}', id), name, cookie };
}

/** Requests a new password, and returns the mailed token. */
async function resetToken(place: Place): Promise<string> {
  const { email } = await account(place);
  await place.api.client('POST', '/api/auth/forgot-password', { email });
  return mailedToken(place, email, 'resetPassword');
}

/** Requests another address, and returns the mailed token. */
async function changeToken(place: Place): Promise<string> {
  const { loggedIn } = await account(place);
  const email = `${place.world.unique()}@example.com`;
  await place.world.options.send({
    method: 'PUT',
    url: '/api/v1/profile/email',
    headers: { cookie: cookiesOf(loggedIn) },
    body: JSON.stringify({ email, password }),
  });
  return mailedToken(place, email, 'changeEmail');
}

export const successes: Readonly<Record<string, Successes>> = {
  'GET /api/v1/client/{workspaceId}/environment': environment,
  'GET /api/v2/client/{workspaceId}/environment': environment,
  'GET /api/v1/client/{workspaceId}/app/environment': environment,
  'GET /api/v1/client/{workspaceId}/website/environment': environment,

  async 'POST /api/v1/client/{workspaceId}/storage/upload'({ world }) {
    const whole = await uploadForm(world, 'walk');
    const changed = await uploadForm(world, 'walk', { policy: 'e30=' });
    const half = { ...whole, body: whole.body.subarray(0, 200) };
    return [whole, changed, half, { ...whole, headers: {} }].map((one) => ({ method: 'POST', ...one }));
  },

  async 'GET /storage/{workspaceId}/{accessType}/{fileName}'({ request, world }) {
    const { headers } = await world.options.send(request);
    return [
      request,
      { ...request, headers: { range: 'bytes=1-2' } },
      { ...request, headers: { 'if-none-match': String(headers.etag) } },
      { ...request, headers: { range: 'bytes=9-' } },
    ];
  },

  async 'POST /api/auth/callback/credentials'(place) {
    const { email } = await account(place);
    const { url } = place.request;
    const all = [
      { email, password, json: 'true' },
      { email, password },
      { email, password: 'x', json: 'true' },
    ];
    return Promise.all(all.map((fields) => form(place.world, url, fields)));
  },

  async 'POST /api/auth/callback/token'(place) {
    const token = await mailedToken(place, await signUp(place), 'verifyEmail');
    const all = [{ token, password, json: 'true' }, { token }, { token: 'x', json: 'true' }];
    return Promise.all(all.map((fields) => form(place.world, place.request.url, fields)));
  },

  async 'POST /api/auth/signout'({ request, world }) {
    return [await form(world, request.url, { json: 'true' }), await form(world, request.url, {})];
  },

  'POST /api/auth/signup': alsoAsForm({ name: 'Walker', password }),
  'POST /api/auth/resend-verification': alsoAsForm({}),
  'POST /api/auth/forgot-password': alsoAsForm({}),
  'GET /auth/login': async ({ request, world }) => [
    request,
    { ...request, headers: { cookie: world.options.session } },
  ],
  'GET /account': async ({ request, world }) => [
    request,
    { ...request, headers: { cookie: world.options.session } },
  ],
  async 'POST /account/api-keys'(place) {
    const reach = `workspace:${place.world.options.workspaceId}`;
    return accountForm({ label: 'Walk', permission: 'read', reach })(place);
  },
  'POST /account/api-keys/{id}/revoke': accountForm({}),
  async [`GET ${ownWorkspace}`](place) {
    const { url, cookie } = await withOwnWorkspace(place);
    return [
      { method: 'GET', url, headers: { cookie } },
      { method: 'GET', url },
    ];
  },
  async [`POST ${ownWorkspace}`](place) {
    const { url, name, cookie } = await withOwnWorkspace(place);
    return [await form(place.world, url, { name }, cookie)];
  },
  async 'GET /account/delete'(place) {
    const cookie = cookiesOf((await account(place)).loggedIn);
    return [{ ...place.request, headers: { cookie } }, place.request];
  },
  async 'POST /account/delete'(place) {
    const { email, loggedIn } = await account(place);
    return [await form(place.world, place.request.url, { email }, cookiesOf(loggedIn))];
  },
  'GET /': async ({ request }) => [request, fromBrowser(request)],
  'GET /js/{script}': script,
  'GET /api/packages/js': script,
  'GET /api/packages/app': script,
  'GET /api/packages/website': script,
  'GET /api/packages/surveys': script,

  async 'GET /api/auth/session'(place) {
    const { loggedIn } = await account(place);
    return [place.request, { ...place.request, headers: { cookie: cookiesOf(loggedIn) } }];
  },

  async 'POST /api/auth/reset-password'(place) {
    const { request, world } = place;
    const token = await resetToken(place);
    const other = await resetToken(place);
    return [
      { ...request, body: JSON.stringify({ token, password: 'Password2' }) },
      fromBrowser(await form(world, request.url, { token: other, password: 'Password3' })),
    ];
  },

  async 'GET /verify-email-change'(place) {
    return [{ ...place.request, url: `/verify-email-change?token=${await changeToken(place)}` }];
  },
  async 'POST /verify-email-change'(place) {
    const body = JSON.stringify({ token: await changeToken(place) });
    return [{ ...place.request, body }];
  },
};

/** Builds a request that succeeds, for an operation of which the description does not say enough too. */
export async function successOf(
  { api, world }: Pick<Place, 'api' | 'world'>,
  operation: Operation,
): Promise<Request> {
  const ids = await world.idsFor(operation);
  const request = await world.requestFor(operation, ids);
  const [own] = (await successes[operation.name]?.({ api, world, operation, ids, request })) ?? [];
  return own ?? request;
}
