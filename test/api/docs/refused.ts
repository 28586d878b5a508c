/**
 * Lists requests that only this operation refuses, by operation and status. The last request of each list is refused.
 */
import { verifiedEmailToken } from '#api/resources/responses/submission-checks.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { addSurvey } from '#test/support/api-app.ts';
import { asOwner, organizationId } from '#test/support/owner.ts';
import { uploadForm } from '#test/support/requests.ts';
import { cookiesOf, openSurvey, type Request } from '#test/support/world.ts';
import { account, form, type Place, type Successes, successes, withOwnWorkspace } from './successes.ts';

type Refused = Readonly<Record<number, Successes>>;

const management = '/api/v1/management';

/** Replaces some members of the body. */
function changed(request: Request, members: Readonly<Record<string, unknown>>): Request {
  return { ...request, body: JSON.stringify({ ...JSON.parse(String(request.body ?? '{}')), ...members }) };
}

async function make({ api, world }: Place, path: string, body: Record<string, unknown>): Promise<string> {
  const { workspaceId } = world.options;
  return (await api.manage('POST', `${management}${path}`, { workspaceId, ...body })).json.data.id;
}

const toClosed: Successes = async ({ api, request }) => {
  const survey = await addSurvey(api, { ...openSurvey, status: 'paused' });
  return [changed(request, { surveyId: survey.id })];
};

const usedLink: Successes = async ({ api, request }) => {
  const survey = await addSurvey(api, { ...openSurvey, singleUse: { enabled: true, isEncrypted: false } });
  const { json } = await api.manage('GET', `${management}/surveys/${survey.id}/singleUseIds?limit=1`);
  const link = new URL(json.data[0]);
  const singleUseId = link.searchParams.get('suId');
  const once = changed(request, { surveyId: survey.id, singleUseId, meta: { url: link.href } });
  return [once, once];
};

const ofClosed: Successes = async ({ api, ids, request, world }) => {
  const { json } = await api.manage('GET', `${management}/responses/${ids.responseId}`);
  await api.manage('PUT', `${management}/surveys/${json.data.surveyId}`, { status: 'paused' });
  return [changed(request, { data: { q1: world.unique() }, finished: false })];
};

/** A verified address may finish one response. This is its second one. */
const finishedAnother: Successes = async ({ api, ids, request, world }) => {
  const { id: surveyId } = await addSurvey(api, {
    ...{ ...openSurvey, isVerifyEmailEnabled: true, isSingleResponsePerEmailEnabled: true },
  });
  const token = verifiedEmailToken(surveyId, `${world.unique()}@example.com`, api.context.signer);
  const meta = { url: `https://x.example/s/${surveyId}?verify=${token}` };
  const begun = { surveyId, finished: false, data: {}, meta };
  const url = `/api/v1/client/${world.options.workspaceId}/responses`;
  const made = [await api.client('POST', url, begun), await api.client('POST', url, begun)];
  return made.map(({ json }) => ({
    ...changed(request, { finished: true }),
    url: request.url.replace(ids.responseId ?? ids.id ?? '', json.data.id),
  }));
};

const revokedTwice: Successes = async (place) => {
  const once = (await successes['POST /account/api-keys/{id}/revoke']?.(place)) ?? [];
  return [...once, ...once];
};

const takenSlug: Successes = async ({ api, request, world }) => {
  const slug = world.unique();
  await addSurvey(api, { slug });
  return [changed(request, { slug })];
};

const asIs: Successes = async ({ request }) => [request];

const wrongPin: Successes = async ({ request }) => [changed(request, { pin: '0000' })];
const twice: Successes = async ({ request }) => [request, request];

const client: Readonly<Record<string, Refused>> = Object.fromEntries(
  ['v1', 'v2'].flatMap((version) => {
    const base = `/api/${version}/client/{workspaceId}`;
    return [
      [`POST ${base}/displays`, { 403: toClosed }],
      [`POST ${base}/responses`, { 403: toClosed, 409: usedLink }],
      [`PUT ${base}/responses/{responseId}`, { 403: ofClosed, 409: finishedAnother }],
      [`POST ${base}/surveys/{surveyId}/pin`, { 403: wrongPin }],
    ];
  }),
);

/** Sends a form without a token, or with an old one, as a browser does. */
const oldForm: Successes = async ({ request }) => [
  { ...request, headers: { accept: 'text/html' }, body: 'csrfToken=old' },
];
/** Sends one of our forms without a login. */
const withoutSession: Successes = async ({ request, world }) => [await form(world, request.url, {})];

/** Creates an account, which manages the first organization too. */
async function manager(place: Place): Promise<{ readonly email: string; readonly cookie: string }> {
  const { email, loggedIn } = await account(place);
  const { db, clock } = place.api.context;
  const user = await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirstOrThrow();
  const membership = { userId: user.id, role: 'manager', createdAt: toTimestamp(clock()) } as const;
  const id = await organizationId({}, place.world);
  await db
    .insertInto('memberships')
    .values({ ...membership, organizationId: id })
    .execute();
  return { email, cookie: cookiesOf(loggedIn) };
}

const byManager: Successes = async (place) => [
  { ...place.request, headers: { cookie: (await manager(place)).cookie } },
];
const goneWorkspace: Successes = async ({ request, world }) => [
  {
    ...(request.method === 'GET' ? request : await form(world, request.url, {}, world.options.session)),
    ...{ url: '/account/workspaces/none/delete' },
    ...(request.method === 'GET' ? { headers: { cookie: world.options.session } } : {}),
  },
];

export const refused: Readonly<Record<string, Refused>> = {
  ...client,
  'POST /api/v1/client/{workspaceId}/storage/upload': {
    403: async ({ world }) => [
      { method: 'POST', ...(await uploadForm(world, 'x', { Signature: '0'.repeat(64) })) },
    ],
    412: asIs,
  },
  'POST /api/auth/signup': { 403: oldForm },
  'POST /api/auth/resend-verification': { 403: oldForm },
  'POST /api/auth/forgot-password': { 403: oldForm },
  'POST /api/auth/reset-password': { 403: oldForm },
  'POST /api/v1/organizations/{organizationId}/workspaces': { 409: twice },
  'PUT /api/v1/management/workspaces/{workspaceId}': {
    409: async ({ request, world }) => {
      const name = world.unique();
      const url = `/api/v1/organizations/${await organizationId({}, world)}/workspaces`;
      await asOwner(world, 'POST', url, { name });
      return [changed(request, { name })];
    },
  },
  'POST /account/api-keys': { 401: withoutSession, 403: oldForm },
  'POST /account/api-keys/{id}/revoke': { 401: withoutSession, 403: oldForm, 404: revokedTwice },
  'GET /account/workspaces/{workspaceId}/delete': { 403: byManager, 404: goneWorkspace },
  'POST /account/workspaces/{workspaceId}/delete': {
    400: async (place) => {
      const { url, cookie } = await withOwnWorkspace(place);
      return [await form(place.world, url, { name: 'Another' }, cookie)];
    },
    ...{ 401: withoutSession, 403: oldForm, 404: goneWorkspace },
  },
  'POST /account/delete': {
    400: async (place) => {
      const { loggedIn } = await account(place);
      return [await form(place.world, place.request.url, { email: 'x@example.com' }, cookiesOf(loggedIn))];
    },
    ...{ 401: withoutSession, 403: oldForm },
    409: async (place) => {
      const { email, cookie } = await manager(place);
      return [await form(place.world, place.request.url, { email }, cookie)];
    },
  },
  'GET /s/{surveyId}': { 404: async ({ request }) => [{ ...request, url: '/s/No-Id' }] },
  'GET /js/{script}': { 404: async ({ request }) => [{ ...request, url: '/js/other.js' }] },
  'POST /api/auth/callback/credentials': {
    401: async ({ request, world }) => [
      await form(world, request.url, { email: 'nobody@example.com', password: 'x', json: 'true' }),
    ],
  },
  'POST /api/auth/callback/token': {
    401: async ({ request, world }) => [await form(world, request.url, { token: 'x', json: 'true' })],
  },
  'GET /storage/{workspaceId}/{accessType}/{fileName}': {
    401: async ({ request }) => [{ ...request, url: request.url.replace('/public/', '/private/') }],
    416: async (place) =>
      (await successes['GET /storage/{workspaceId}/{accessType}/{fileName}']?.(place)) ?? [],
  },
  'POST /api/v1/management/surveys': { 409: takenSlug },
  'PUT /api/v1/management/surveys/{surveyId}': { 409: takenSlug },
  'POST /api/v1/surveys': { 409: takenSlug },
  'PUT /api/v1/surveys/{surveyId}': { 409: takenSlug },
  'POST /api/v1/management/responses': { 409: usedLink },
  'POST /api/v1/responses': { 409: usedLink },
  'POST /api/v2/management/responses': { 409: usedLink },
  'PUT /api/v1/management/responses/{responseId}': { 409: finishedAnother },
  'PUT /api/v1/responses/{responseId}': { 409: finishedAnother },
  'PUT /api/v2/management/responses/{id}': { 409: finishedAnother },
  'GET /api/v2/management/contact-attribute-keys': {
    // refusals.test.ts adds this workspace.
    403: async ({ api, request, world }) => {
      const key = await api.addKey({ [world.options.workspaceId]: 'read' });
      const headers = { ...request.headers, 'x-api-key': key };
      return [{ ...request, headers, url: `${request.url}?workspaceId=elsewhere` }];
    },
  },
  'POST /api/v2/management/contact-attribute-keys': { 409: twice },
  'POST /api/v2/management/contacts': { 409: twice },
  'POST /api/v1/management/action-classes': { 409: twice },
  'PUT /api/v1/management/action-classes/{actionClassId}': {
    409: async (place) => {
      const name = place.world.unique();
      await make(place, '/action-classes', { name, type: 'code', key: name });
      return [changed(place.request, { name })];
    },
  },
  'POST /api/v1/management/segments': { 409: twice },
  'PUT /api/v1/management/segments/{segmentId}': {
    409: async (place) => {
      const title = place.world.unique();
      await make(place, '/segments', { title });
      return [changed(place.request, { title })];
    },
  },
  'DELETE /api/v1/management/segments/{segmentId}': {
    409: async ({ api, ids, request }) => {
      await addSurvey(api, { type: 'app', segmentId: ids.segmentId });
      return [request];
    },
  },
  'POST /api/v1/management/languages': { 409: twice },
  'DELETE /api/v1/management/languages/{languageId}': {
    409: async ({ api, ids, request }) => {
      const { json } = await api.manage('GET', `${management}/languages/${ids.languageId}`);
      const languages = [{ language: json.data.code, default: true, enabled: true }];
      await addSurvey(api, { languages });
      return [request];
    },
  },
};
