/** Sends the requests of SDKs in their order through the gateway (api/compatibility/client.md). */
import t from 'tap';
import { surveyBody } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';
import { sharedStack } from '#test/support/stack.ts';

const stack = await sharedStack();
const { workspaceId, origin } = stack;

interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly json: Json;
}

async function send(method: string, path: string, body?: unknown): Promise<Answer> {
  const reply = await fetch(`${origin}${path}`, {
    method,
    headers: { 'content-type': 'application/json', 'cache-control': 'no-cache' },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await reply.text();
  return { status: reply.status, headers: reply.headers, json: text === '' ? null : JSON.parse(text) };
}

const action = await stack.manage('POST', '/api/v1/management/action-classes', {
  workspaceId,
  name: 'Cart opened',
  type: 'code',
  key: 'cart-opened',
});
const survey = await stack.manage(
  'POST',
  '/api/v1/management/surveys',
  surveyBody({ workspaceId, type: 'app', triggers: [{ actionClass: action }] }),
);
const surveyId: string = (survey as { id: string }).id;

for (const version of ['v1', 'v2'] as const) {
  const base = `/api/${version}/client/${workspaceId}`;
  t.test(`${version}: environment, user, display, response, completion, recovery`, async (t) => {
    const environment = await send('GET', `${base}/environment`);
    t.equal(environment.status, 200);
    const { data, expiresAt } = environment.json.data;
    t.ok(Date.parse(expiresAt) > Date.now());
    const shown = data.surveys.find(({ id }: { id: string }) => id === surveyId);
    t.match(shown, { triggers: [{ actionClass: { name: 'Cart opened' } }], segment: { id: String } });
    t.match(
      environment.json.data.surveys.find(({ id }: { id: string }) => id === surveyId).triggers,
      [{ actionClass: 'Cart opened' }],
      'the older form is sent too',
    );

    const userId = `user-${version}`;
    const user = await send('POST', `${base}/user`, { userId, attributes: { plan: 'pro', language: 'de' } });
    t.equal(user.status, 200);
    const state = user.json.data.state;
    t.match(state.data, { userId, contactId: String, displays: [], responses: [], lastDisplayAt: null });
    t.ok(state.data.segments.includes(shown.segment.id), 'the survey applies to this user');
    t.ok(Date.parse(state.expiresAt) > Date.now());

    const who = version === 'v1' ? { userId } : { contactId: state.data.contactId };
    const display = await send('POST', `${base}/displays`, { surveyId, ...who });
    t.match(display, { status: 200, json: { data: { surveyId, contactId: state.data.contactId } } });
    const displayId = display.json.data.id;
    const created = await send('POST', `${base}/responses`, {
      surveyId,
      displayId,
      ...who,
      finished: false,
      data: {},
      ttc: {},
      variables: {},
      language: 'de',
      singleUseId: null,
      meta: { url: 'https://shop.example/', source: '', action: 'Cart opened' },
    });
    t.match(created, { status: 200, json: { data: { quotaFull: false } } });
    const responseId = created.json.data.id;
    t.match(await send('GET', `/api/v1/client/${workspaceId}/displays/${displayId}/response`), {
      status: 200,
      json: { data: { responseId } },
    });
    const steps = [
      { finished: false, data: { q1: 'Some' }, ttc: { q1: 500 } },
      { finished: true, data: { q1: 'Something' }, ttc: { q1: 900 }, endingId: null },
    ];
    for (const step of steps) {
      t.match(await send('PUT', `${base}/responses/${responseId}`, step), {
        status: 200,
        json: { data: { id: responseId, quotaFull: false } },
      });
    }
    t.match(await send('PUT', `${base}/responses/${responseId}`, steps[1]), {
      status: 400,
      json: { details: { code: 'response_already_finished' } },
    });

    const after = await send('POST', `${base}/user`, { userId });
    t.match(after.json.data.state.data, {
      displays: [{ surveyId, createdAt: String }],
      responses: [surveyId],
      lastDisplayAt: String,
      language: 'de',
    });
    t.match(await stack.manage('GET', `/api/v1/management/responses/${responseId}`), {
      finished: true,
      data: { q1: 'Something' },
      ttc: { q1: 900, _total: 900 },
      contact: { userId },
      contactAttributes: { plan: 'pro' },
    });
  });
}

t.test('a display is linked to a user and a response afterwards', async (t) => {
  const base = `/api/v1/client/${workspaceId}`;
  const display = await send('POST', `${base}/displays`, { surveyId });
  const response = await send('POST', `${base}/responses`, { surveyId, finished: true, data: { q1: 'x' } });
  const link = { responseId: response.json.data.id, userId: 'linked later' };
  t.match(await send('PUT', `${base}/displays/${display.json.data.id}`, link), {
    status: 200,
    json: { data: {} },
  });
  t.match(await send('GET', `${base}/displays/${display.json.data.id}/response`), {
    json: { data: { responseId: link.responseId } },
  });
});

t.test('older SDKs: the aliases of the environment and of the user', async (t) => {
  const base = `/api/v1/client/${workspaceId}`;
  for (const alias of ['app', 'website']) {
    const { json } = await send('GET', `${base}/${alias}/environment`);
    t.equal(json.data.project.id, workspaceId);
  }
  for (const kind of ['contacts', 'people']) {
    t.match(await send('PUT', `${base}/${kind}/user-v1/attributes`, { attributes: { team: kind } }), {
      status: 200,
      json: { data: { changed: true, message: String } },
    });
    t.match(await send('GET', `${base}/identify/${kind}/user-v1`), {
      status: 200,
      json: { data: { userId: 'user-v1', contactId: String, segments: Array, responses: [surveyId] } },
    });
    t.match(await send('GET', `${base}/identify/${kind}/new-${kind}`), {
      status: 200,
      json: { data: { userId: `new-${kind}`, responses: [], displays: [] } },
    });
  }
});

t.test('errors have the envelope, CORS and cache headers that SDKs need', async (t) => {
  const base = `/api/v1/client/${workspaceId}`;
  const cases: readonly (readonly [number, string, string, unknown?])[] = [
    [404, 'GET', '/api/v1/client/nosuchworkspace/environment'],
    [400, 'GET', '/api/v1/client/No-Id/environment'],
    [400, 'POST', `${base}/responses`, {}],
    [404, 'PUT', `${base}/responses/cnosuchresponse0000000000`, { finished: true }],
    [400, 'POST', `${base}/user`, {}],
    [404, 'GET', `${base}/displays/cnosuchdisplay00000000000/response`],
    [405, 'PATCH', `${base}/responses`, {}],
  ];
  for (const [status, method, path, body] of cases) {
    const reply = await send(method, path, body);
    t.equal(reply.status, status, `${method} ${path}`);
    t.match(reply.json, { code: String, message: String, details: Object });
    t.equal(reply.headers.get('access-control-allow-origin'), '*');
    t.equal(reply.headers.get('cache-control'), 'private, no-store');
  }
});

t.test('every client path answers preflights, which are not counted', async (t) => {
  for (const path of [
    'environment',
    'displays',
    'responses',
    'user',
    'storage',
    'responses/x',
    'displays/x',
  ]) {
    const { headers, json, status } = await send('OPTIONS', `/api/v1/client/unknown/${path}`);
    t.match({ status, json }, { status: 200, json: { data: {} } }, path);
    t.match(headers.get('access-control-allow-headers'), 'Content-Type');
    t.equal(headers.get('x-ratelimit-limit'), null);
  }
});
