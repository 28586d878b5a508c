/**
 * Whatever arrives at an operation of the description, the reply is described, is no 500, and shows no internals. Routes
 * that are added later are included.
 */
import t from 'tap';
import { anyText } from '#test/support/any-text.ts';
import { publicUrl, workspaceId } from '#test/support/api-app.ts';
import { type Operation, recordAt, type Sent } from '#test/support/description.ts';
import { fc } from '#test/support/fast-check.ts';
import { resolved } from '#test/support/sample-body.ts';
import { arbitraryOf } from '#test/support/schema-arbitrary.ts';
import { rounds } from '#test/support/seed.ts';
import { cookiesOf, type Request } from '#test/support/world.ts';
import { startDescribedApi } from '../docs/described-api.ts';

/** Number of runs. Each run tries other values for every property of one operation. */
const RUNS = rounds(40);
const PATH_RUNS = rounds(1_500);
const COOKIE_RUNS = rounds(60);
/** All routes share the parser that refuses bytes that are not JSON. A few runs per route show that they use it. */
const BYTES_RUNS = rounds(8);
const INTERNALS = /\.ts:\d|node_modules|SQLITE|select ["*]|argon2id/i;

const { api, description, operations, tidy, world } = await startDescribedApi(t);
const { send, session } = world.options;
const csrf = await send({ method: 'GET', url: '/api/auth/csrf' });
const csrfToken: string = JSON.parse(csrf.text).csrfToken;
t.beforeEach(tidy);

/** @throws Error with what is wrong with the reply */
function assertSound(operation: Operation, { headers, status, text }: Sent): true {
  const problems = [...description.problemsOf(operation, { headers, status, text })];
  if (status >= 500) problems.push(text);
  if (status >= 400 && INTERNALS.test(text)) problems.push(`internals: ${text}`);
  if (problems.length > 0) throw new Error(problems.join('; '));
  return true;
}

/** Whether a redirect or a new row is on our own site. */
const leadsHome = ({ headers: { location = '/' } }: Sent): boolean =>
  String(location).startsWith(publicUrl) || /^\/(?![/\\])/.test(String(location));

/** Returns the credentials of the operation, and the cookie that belongs to the token of forms. */
function headersFor(operation: Operation): Record<string, string> {
  const isOfPerson = operation.path.startsWith('/account') || operation.credentials.join() === 'session';
  const cookie = [cookiesOf(csrf), ...(isOfPerson ? [session] : [])].join('; ');
  return { ...world.credentialsFor(operation), cookie };
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);
const fieldsOf = ({ body }: Operation): readonly string[] =>
  Object.keys(recordAt(resolved(body, description.schemas), 'properties'));

/** Names and values that routes know, so that random values reach the checks. */
const names = [
  ...new Set(operations.flatMap(fieldsOf)),
  ...['questions', 'elements', 'id', 'headline', 'choices', 'rows', 'validation', 'logic', 'charLimit'],
  ...['__proto__', 'constructor', 'toString', 'hasOwnProperty', 'default', '_total'],
];
const values = fc.oneof(
  fc.jsonValue({ maxDepth: 4 }),
  fc.constantFrom('q1', 'userId', 'openText', 'matrix', 'ranking', 'fileUpload', 'pattern', 'code', 'noCode'),
  fc.constantFrom('me@example.com', 'Password1', csrfToken, 'true', workspaceId, '//evil', 'javascript:1'),
  fc.constantFrom('a\u0000b', '\ud800', '\r\nset-cookie: a=b', 'x'.repeat(5_000), 'http://[', 'http://%00'),
);
const record = fc.dictionary(fc.constantFrom(...names), values, { maxKeys: 6 });
const records = fc.oneof(record, fc.array(fc.oneof(record, values), { maxLength: 3 }));
const filter = fc.record({
  connector: fc.oneof(fc.constantFrom(null, 'and', 'or'), values),
  resource: fc.oneof(
    fc.record({
      root: fc.oneof(
        fc.record({
          type: fc.constantFrom('attribute', 'person', 'segment', 'device', 'surveyInteraction'),
          contactAttributeKey: fc.constantFrom('plan', 'toString'),
        }),
        values,
      ),
      value: fc.oneof(fc.string(), values),
      qualifier: fc.record({
        operator: fc.oneof(
          fc.constantFrom('equals', 'isBetween', 'userIsIn', 'haveSeen', 'constructor'),
          values,
        ),
      }),
    }),
    values,
  ),
});
/** Parts that the description leaves open. */
const openParts = fc.record(
  {
    noCodeConfig: records,
    filters: fc.array(filter),
    targeting: fc.record({ filters: fc.array(filter) }),
    attributes: fc.dictionary(fc.oneof(fc.constantFrom('email', 'language', 'valueOf'), fc.string()), values),
    data: fc.oneof(record, fc.record({ blocks: records, languages: records, distribution: record })),
    questions: records,
    url: fc.oneof(fc.webUrl(), fc.string(), values),
  },
  { requiredKeys: [] },
);
const hostileBody = fc.oneof(openParts, record, fc.jsonValue({ maxDepth: 4 }));
const brokenBody = fc.oneof(
  fc.uint8Array({ minLength: 1, maxLength: 200 }).map((bytes) => Buffer.from(bytes)),
  fc.constantFrom('%', '%zz=%', '{', '{"a":', '&&&===', 'a'.repeat(20_000), `{"a":${'['.repeat(200)}`),
);

const asForm = (fields: Record<string, unknown>): string =>
  new URLSearchParams(
    Object.entries({ csrfToken, ...fields }).map(([name, value]) => [
      name,
      // An object may have a toString that is no function.
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  ).toString();

/** A finished response would refuse all that follow, and a workspace has room for some webhooks. */
async function reopen(): Promise<void> {
  await api.context.db.updateTable('responses').set({ finished: 0 }).execute();
  await tidy();
}

for (const operation of operations.filter(({ body }) => body !== null)) {
  const isForm = operation.reads.includes('application/x-www-form-urlencoded');

  /** Sends many bodies to one row, and checks each reply. */
  const bear = async (
    bodies: (valid: Record<string, unknown>) => fc.Arbitrary<string | Buffer>,
    numRuns: number,
    check: (reply: Sent) => boolean,
  ): Promise<void> => {
    const made = await world.requestFor(operation);
    const request: Request = { ...made, headers: headersFor(operation) };
    const property = fc.asyncProperty(bodies(JSON.parse(String(made.body))), async (body) => {
      const reply = await send({ ...request, body });
      return assertSound(operation, reply) && leadsHome(reply) && check(reply);
    });
    await fc.assert(property.beforeEach(reopen), { numRuns });
  };

  t.test(`${operation.name}: bodies near its schema`, async (t) => {
    const near = arbitraryOf(operation.body, description.schemas);
    const bodies = (valid: Record<string, unknown>) =>
      // Some fields keep valid values, so that the others are checked.
      fc.tuple(near, fc.subarray(Object.keys(valid))).map(([body, kept]) => {
        const right = Object.fromEntries(kept.map((name) => [name, valid[name]]));
        return JSON.stringify(isObject(body) ? { ...body, ...right } : body);
      });
    await bear(bodies, RUNS, () => true);
    t.pass(`${RUNS} bodies`);
  });

  t.test(`${operation.name}: random bodies get no 500`, async (t) => {
    const bodies = (valid: Record<string, unknown>) =>
      fc.tuple(hostileBody, fc.boolean(), fc.boolean()).map(([body, isMixed, asJson]) => {
        const whole = isMixed && isObject(body) ? { ...valid, ...body } : body;
        return isForm && !asJson && isObject(whole) ? asForm(whole) : JSON.stringify(whole);
      });
    await bear(bodies, RUNS, () => true);
    t.pass(`${RUNS} bodies`);
  });

  t.test(`${operation.name}: ${isForm ? 'random bytes get no 500' : 'refuses random bytes'}`, async (t) => {
    await bear(
      () => brokenBody,
      BYTES_RUNS,
      ({ status }) => isForm || status >= 400,
    );
    t.pass(`${BYTES_RUNS} bodies`);
  });
}

const pathPart = fc.oneof(
  anyText({ maxLength: 20 }).map(encodeURIComponent),
  fc.string({ maxLength: 20 }).map((text) => text.replaceAll(/[^\x21-\x7e]|[?#]/g, '')),
  fc.constantFrom('%00', '%zz', '%', '..', '%2e%2e', '%2F', '%F0%9F%98', 'a'.repeat(600)),
  fc.constantFrom("'", '"; drop table surveys; --', '1e9', '-1', '999999999999999999999', workspaceId),
  fc.constant(Buffer.from('["updatedAt","\\u0000","x"]').toString('base64url')),
);

t.test('random paths and queries get no 500', async (t) => {
  const withParameters = operations.filter(({ parameters }) => parameters.length > 0);
  const work = fc.tuple(fc.constantFrom(...withParameters), pathPart, fc.nat(), fc.boolean());
  await fc.assert(
    fc.asyncProperty(work, async ([operation, part, which, isElsewhere]) => {
      const { method, path, parameters } = operation;
      const filled = path.replaceAll(/\{(\w+)\}/g, (_, name) =>
        name === 'workspaceId' && !isElsewhere ? workspaceId : part,
      );
      const names = parameters.flatMap((one) => (one.in === 'query' ? [String(one.name)] : []));
      const name = [...names, '__proto__'][which % (names.length + 1)];
      const needed = path.startsWith('/api/v3/') ? `workspaceId=${workspaceId}&` : '';
      const url = `${filled}?${needed}${name}=${part}`.replaceAll(' ', '%20');
      const body = method === 'GET' ? undefined : '{}';
      const { status, text } = await send({ method, url, headers: headersFor(operation), body });
      if (status >= 500 || (status >= 400 && INTERNALS.test(text))) throw new Error(`${status} ${text}`);
      // PostgreSQL cannot store a NUL, so no operation accepts one.
      if (part === '%00' && status < 400) throw new Error(`${url} is accepted`);
      return true;
    }),
    { numRuns: PATH_RUNS },
  );
  t.pass(`${PATH_RUNS} requests`);
});

const cookieValue = fc.oneof(
  fc.string({ maxLength: 50 }).map((text) => text.replaceAll(/[^\x20-\x7e]/g, '')),
  fc.constantFrom('%', '%zz', '|', 'x'.repeat(10_000), '%00', ';;;', '=', '__proto__'),
);
const cookieName = fc.constantFrom('next-auth.session-token', '__Secure-next-auth.session-token', 'x');
const readers = ['/api/auth/session', '/api/v1/me', '/api/auth/csrf'];

t.test('random cookies get no 500', async (t) => {
  await fc.assert(
    fc.asyncProperty(cookieName, cookieValue, async (name, value) => {
      for (const operation of operations.filter(({ path }) => readers.includes(path))) {
        const headers = { cookie: `${name}=${value}` };
        assertSound(operation, await send({ method: 'GET', url: operation.path, headers }));
      }
      return true;
    }),
    { numRuns: COOKIE_RUNS },
  );
  t.pass(`${COOKIE_RUNS} cookies`);
});
