/**
 * Every operation refuses who has no credentials, and answers without the row with a described error.
 * wrong-requests.test.ts has refusals of shapes.
 */
import t from 'tap';
import { startDescribedApi } from './described-api.ts';
import { wrongIds } from './wrong.ts';

const { ask, operations, tidy, world } = await startDescribedApi(t);
t.beforeEach(tidy);

const isClientError = (status: number): boolean => status >= 400 && status < 500;

t.test('401 or 403: without credentials, with wrong ones, or from a page of another origin', async (t) => {
  for (const operation of operations.filter(({ credentials }) => credentials.length > 0)) {
    const request = await world.requestFor(operation);
    const strangers: Record<string, string>[] = [
      {},
      { 'x-api-key': 'fbk_nobody' },
      { authorization: 'Bearer fbk_nobody' },
      { cookie: 'next-auth.session-token=nobody' },
    ];
    for (const headers of strangers) {
      const { status } = await ask(t, operation, { ...request, headers }, 'as a stranger');
      t.equal(status, 401, operation.name);
    }
    if (!operation.credentials.includes('session')) continue;
    const headers = { cookie: world.options.session, origin: 'https://elsewhere.example' };
    const { status } = await ask(t, operation, { ...request, headers }, 'from another origin');
    if (operation.method !== 'GET') t.equal(status, 403, operation.name);
  }
});

t.test('unknown and malformed ids get described errors', async (t) => {
  for (const operation of operations.filter(({ path }) => path.includes('{'))) {
    await tidy();
    const ids = await world.idsFor(operation);
    for (const wrong of wrongIds(operation, ids)) {
      const request = await world.requestFor(operation, ids);
      const url = world.urlOf(operation, wrong);
      const what = `with ${JSON.stringify(wrong).slice(0, 80)}`;
      const { status } = await ask(t, operation, { ...request, url }, what);
      // PostgreSQL cannot store a NUL, so no operation accepts one.
      if (url.includes('%00')) t.ok(isClientError(status), `${operation.name}, ${what}`);
    }
    const url = world.urlOf(
      operation,
      Object.fromEntries(Object.keys(ids).map((name) => [name, 'a'.repeat(600)])),
    );
    const { status } = await ask(
      t,
      operation,
      { ...(await world.requestFor(operation, ids)), url },
      'too long',
    );
    t.ok(isClientError(status), `${operation.name}: ${status}`);
  }
});
