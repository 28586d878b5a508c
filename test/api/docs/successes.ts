/** Lists requests that succeed where a generated request would not, and operations that succeed in several ways. */
import type { TestApi } from '#test/support/api-app.ts';
import type { Operation, Sent } from '#test/support/description.ts';
import { signUp } from '#test/support/login.ts';
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

const script: Successes = async ({ request, world }) => {
  const { headers } = await world.options.send(request);
  return [request, { ...request, headers: { 'if-none-match': String(headers.etag) } }];
};

const password = 'Password1';

/** Signs a person up who has not opened the link yet. */
async function signUpOne({ api, world }: Place): Promise<string> {
  const email = `${world.unique()}@example.com`;
  await signUp(api, { name: 'Walker', email, password });
  return email;
}

/** Creates an account. @returns the reply to the login */
export async function account(place: Place): Promise<{ readonly email: string; readonly loggedIn: Sent }> {
  const email = await signUpOne(place);
  const token = await mailedToken(place, email, 'verifyEmail');
  const { world } = place;
  const loggedIn = await world.options.send(
    await form(world, '/api/auth/callback/token', { token, password, json: 'true' }),
  );
  return { email, loggedIn };
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
    const token = await mailedToken(place, await signUpOne(place), 'verifyEmail');
    const all = [{ token, password, json: 'true' }, { token }, { token: 'x', json: 'true' }];
    return Promise.all(all.map((fields) => form(place.world, place.request.url, fields)));
  },

  async 'POST /api/auth/signout'({ request, world }) {
    return [await form(world, request.url, { json: 'true' }), await form(world, request.url, {})];
  },

  'GET /js/{script}': script,

  async 'GET /api/auth/session'(place) {
    const { loggedIn } = await account(place);
    return [place.request, { ...place.request, headers: { cookie: cookiesOf(loggedIn) } }];
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
