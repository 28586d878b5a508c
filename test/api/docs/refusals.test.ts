/**
 * Every operation refuses who has no credentials, and answers without the row with a described error.
 * test/api/http/hostile.test.ts sends what has the wrong shape.
 */
import t from 'tap';
import { startDescribedApi } from './described-api.ts';

const { ask, operations, tidy, world } = await startDescribedApi(t);
t.beforeEach(tidy);

/** An id that does not exist, one that no database stores, and some that are hard to read. */
const wrongIds = [
  'c0000000000000000000000000',
  '\u0000',
  ' ',
  '%',
  '../x',
  "'",
  '\u{1f600}',
  'a'.repeat(600),
];

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
    for (const [name, id] of Object.keys(ids).flatMap((one) =>
      wrongIds.map((wrong) => [one, wrong] as const),
    )) {
      const request = await world.requestFor(operation, ids);
      const url = world.urlOf(operation, { ...ids, [name]: id });
      const what = `with ${name} ${id.slice(0, 80)}`;
      const { status } = await ask(t, operation, { ...request, url }, what);
      // PostgreSQL cannot store a NUL, so no operation accepts one, nor a longer part than the router does.
      const isInPath = operation.path.includes(`{${name}}`);
      if (isInPath && /\0|a{600}/.test(id)) t.ok(isClientError(status), `${operation.name}, ${what}`);
    }
  }
});
