/** Runs the published wrapper `@formbricks/api` against the product. */
import { FormbricksAPI } from '@formbricks/api';
import t from 'tap';
import { surveyBody } from '#test/support/api-app.ts';
import type { Json } from '#test/support/json.ts';
import { policiesWithoutEdges } from '#test/support/policies-without-edges.ts';
import { startStack } from '#test/support/stack.ts';

const stack = await startStack(t, { gatewayEnv: { GATEWAY_POLICIES: policiesWithoutEdges(t) } });
const { workspaceId, origin } = stack;
const { client } = new FormbricksAPI({ apiHost: origin, environmentId: workspaceId });

async function addSurvey(overrides: Record<string, unknown> = {}): Promise<string> {
  const body = surveyBody({ workspaceId, ...overrides });
  const made: Json = await stack.manage('POST', '/api/v1/management/surveys', body);
  return made.id;
}

/** Returns the result of the wrapper. Its types do not describe `data`. */
function dataOf(result: { ok: true; data: unknown } | { ok: false; error: unknown }): Json {
  if (!result.ok) throw new Error(`The wrapper reports ${JSON.stringify(result.error)}`);
  return result.data;
}

const surveyId = await addSurvey();

t.test('a display, a response to it, its completion, and the data in the management API', async (t) => {
  const displayId = dataOf(await client.display.create({ surveyId, userId: 'jane' })).id;
  t.match(displayId, /^c[a-z0-9]{24}$/);
  const created = dataOf(
    await client.response.create({
      surveyId,
      displayId,
      userId: 'jane',
      finished: false,
      data: { q1: 'half an ans' },
      ttc: { q1: 1200 },
      language: 'default',
      meta: { source: 'e2e', url: 'https://shop.example/cart', action: 'Cart opened' },
      variables: {},
    }),
  );
  const responseId = created.id;
  t.match(created, { id: /^c[a-z0-9]{24}$/, quotaFull: false });
  const updated = dataOf(
    await client.response.update({
      responseId: responseId,
      finished: true,
      data: { q1: 'a whole answer' },
      ttc: { q1: 3400 },
      language: 'default',
    }),
  );
  t.match(updated, { id: responseId, quotaFull: false });

  t.match(await stack.manage('GET', `/api/v1/management/responses/${responseId}`), {
    surveyId,
    displayId,
    finished: true,
    data: { q1: 'a whole answer' },
    ttc: { q1: 3400, _total: 3400 },
    language: 'default',
    meta: { source: 'e2e', url: 'https://shop.example/cart', action: 'Cart opened' },
    person: { userId: 'jane' },
    contact: { userId: 'jane' },
  });
});

t.test('attributes of a known contact; numbers become text; an unknown contact is refused', async (t) => {
  const changed = await client.attribute.update({ userId: 'jane', attributes: { plan: 'pro', seats: '4' } });
  t.match(dataOf(changed), { changed: true, message: String });
  const people = await stack.manage('GET', '/api/v1/management/people');
  t.match(people, [{ userId: 'jane', attributes: { userId: 'jane', plan: 'pro', seats: '4' } }]);
  const unknown = await client.attribute.update({ userId: 'nobody', attributes: { plan: 'pro' } });
  t.match(unknown, { ok: false, error: { status: 404, message: 'contact not found' } });
});

t.test('the wrapper can parse every error', async (t) => {
  const paused = await addSurvey({ status: 'paused' });
  t.match(await client.response.create({ surveyId: paused, finished: true, data: {} }), {
    ok: false,
    error: {
      code: 'forbidden',
      status: 403,
      message: 'Survey is not accepting submissions',
      details: { surveyId: paused },
    },
  });
  t.match(await client.display.create({ surveyId: 'cnosuchsurvey000000000000' }), {
    ok: false,
    error: { code: 'network_error', status: 404, details: { resource_type: 'Survey' } },
  });
  const responseId = dataOf(await client.response.create({ surveyId, finished: true, data: { q1: 'x' } })).id;
  t.match(await client.response.update({ responseId, finished: true, data: { q1: 'y' }, ttc: {} }), {
    ok: false,
    error: { status: 400, details: { code: 'response_already_finished' } },
  });
});

t.test('the gateway refuses the 101st display of a window, and the wrapper can read the error', async (t) => {
  const results = [];
  for (let i = 0; i < 101; i++) {
    results.push(await client.display.create({ surveyId }));
  }
  const refused = results.find((result) => !result.ok);
  t.match(refused, { ok: false, error: { code: 'network_error', status: 429, message: String } });
});
