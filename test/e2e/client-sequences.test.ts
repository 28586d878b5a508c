/** Sends the requests of SDKs in their order through the gateway (test/api/compatibility/client.md). */
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
