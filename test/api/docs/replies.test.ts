/**
 * Sends valid and invalid requests to every operation of the description. The description has each received status and
 * its body. Routes that are added later are included.
 */
import t from 'tap';
import type { Operation } from '#test/support/description.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { openHttp } from '#test/support/http-send.ts';
import { startDescribedApi } from './described-api.ts';
import { successes } from './successes.ts';

const described = await startDescribedApi(t);
const { api, ask, description, operations, seen, tidy, world } = described;

t.beforeEach(tidy);

const isSuccess = (status: number): boolean => status < 400;
const documentedSuccesses = (operation: Operation): readonly number[] =>
  Object.keys(operation.responses).map(Number).filter(isSuccess);

t.test('valid requests receive every described success', async (t) => {
  for (const operation of operations) {
    const documented = documentedSuccesses(operation);
    const ids = await world.idsFor(operation);
    const request = await world.requestFor(operation, ids);
    const requests = (await successes[operation.name]?.({ api, world, operation, ids, request })) ?? [
      request,
    ];
    for (const one of requests) await ask(t, operation, one, 'as it should be');
    const missing = documented.filter((status) => !seen.get(operation.name)?.has(status));
    t.strictSame(
      missing,
      [],
      `${operation.name}: if its schema does not say enough, see test/support/requests.ts`,
    );
  }
});

t.test('a repeated call gets a described reply, and 404 after a deletion', async (t) => {
  for (const operation of operations.filter(({ method }) => method !== 'GET')) {
    const request = await world.requestFor(operation);
    await ask(t, operation, request, 'the first time');
    const { status } = await ask(t, operation, request, 'the second time');
    const isGone = operation.method === 'DELETE' && !operation.path.startsWith('/storage');
    if (isGone) t.equal(status, 404, operation.name);
  }
});

t.test('429: over a limit of the application, in the shape of the surface', async (t) => {
  const limited = await startDescribedApi(t, { env: { RATE_LIMITING_DISABLED: '0' } });
  for (const name of ['GET /api/v1/me', 'GET /api/v2/me', 'GET /api/v3/surveys']) {
    const operation = limited.operations.find((one) => one.name === name);
    if (operation === undefined) return t.fail(`${name} does not exist any more`);
    const request = await limited.world.requestFor(operation);
    const statuses: number[] = [];
    for (let count = 0; count <= 100; count += 1) {
      statuses.push((await limited.ask(t, operation, request, 'again and again')).status);
    }
    t.equal(statuses.indexOf(429), 100, name);
  }
});

t.test('503: while the service starts', async (t) => {
  const starting = await startDescribedApi(t, { isReady: () => false });
  for (const operation of starting.operations) {
    const request = { method: operation.method, url: starting.world.urlOf(operation, {}) };
    const { status } = await starting.ask(t, operation, request, 'too early');
    t.equal(status, 503, operation.name);
  }
});

t.test('the 429 of the gateway has the described shape', async (t) => {
  const [row] = [`name: one, route: GET /api/*, identifier: ip, limit: 1, window: 1m`];
  const { origin } = await startTestGateway(t, {
    ...{ upstream: described.origin, policies: policyFile(row), wallClock: () => api.context.clock() },
  });
  const { close, send } = openHttp(origin);
  t.teardown(close);
  const lists = ['/api/v1/management/surveys', '/api/v1/client/{workspaceId}/environment', '/api/v3/surveys'];
  for (const operation of operations.filter(({ method, path }) => method === 'GET' && lists.includes(path))) {
    const request = await world.requestFor(operation);
    await send(request);
    const reply = await send(request);
    t.equal(reply.status, 429);
    t.equal(reply.headers['x-gateway-ratelimited'], 'true');
    t.strictSame(description.problemsOf(operation, reply), [], operation.name);
  }
});

t.test('a reply that differs from the description is found', async (t) => {
  const operation = operations.find(({ name }) => name === 'GET /api/v1/management/surveys');
  if (operation === undefined) return t.fail('the operation does not exist any more');
  const reply = await world.options.send(await world.requestFor(operation));
  t.strictSame(description.problemsOf(operation, reply), []);
  t.match(description.problemsOf(operation, { ...reply, status: 201 }), [/201 is not described/]);
  t.match(description.problemsOf(operation, { ...reply, text: '{"data":[{"id":1}]}' }), [/200 .*required/]);
  t.match(description.problemsOf(operation, { ...reply, headers: {} }), [/no type/]);
  const limited = { status: 429, headers: { 'content-type': 'application/json' }, text: '{}' };
  t.match(description.problemsOf(operation, limited), [/429 .*required/]);
});
