/** The links of a list lead to its end. */
import t from 'tap';
import { LIST_PAGE_BYTES_MAX } from '#api/values/content-limits.ts';
import { addActionClass, addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { responseRow } from '#test/support/response-row.ts';

const api = await startApi(t);
const { db } = api.context;
const now = '2026-01-01T00:00:00.000Z';

/** Walks the list by its links. @returns the ids of each page */
async function walk(api: TestApi, start: string): Promise<readonly (readonly string[])[]> {
  const pages: string[][] = [];
  for (let url: string | undefined = start; url !== undefined; ) {
    const reply = await api.manage('GET', url);
    if (reply.status !== 200) throw new Error(reply.text);
    pages.push(reply.json.data.map(({ id }: { id: string }) => id));
    url = /^<([^>]+)>; rel="next"$/.exec(String(reply.headers.link ?? ''))?.[1];
  }
  return pages;
}

await db
  .insertInto('contacts')
  .values(
    Array.from({ length: 1_003 }, (_, i) => ({
      id: `c${String(i).padStart(4, '0')}`,
      createdAt: now,
      updatedAt: now,
      workspaceId,
      userId: `u${i}`,
    })),
  )
  .execute();

t.test('more than one page: the reply names the next one, and every contact comes once', async (t) => {
  const pages = await walk(api, '/api/v1/management/people');
  t.strictSame(
    pages.map((page) => page.length),
    [1_000, 3],
  );
  t.equal(new Set(pages.flat()).size, 1_003);
  t.strictSame(pages.flat(), pages.flat().toSorted(), 'oldest first, equal times by id');
  const small = await walk(api, '/api/v1/management/contacts?limit=500&skip=1');
  t.strictSame(
    small.map((page) => page.length),
    [500, 500, 2],
  );
});

t.test('a full last page names no next page', async (t) => {
  for (const [url, isLast] of [
    ['/api/v1/management/contacts?limit=1003', true],
    ['/api/v1/management/contacts?limit=1002', false],
    ['/api/v1/management/contacts?skip=5000', true],
  ] as const) {
    const reply = await api.manage('GET', url);
    t.equal(reply.headers.link === undefined, isLast, url);
  }
});

t.test('every list has pages', async (t) => {
  await addSurvey(api, { name: 'One' });
  await addSurvey(api, { name: 'Two' });
  for (const name of ['One', 'Two']) {
    await addActionClass(api, name);
    await api.manage('POST', '/api/v1/management/segments', { workspaceId, title: name });
    await api.manage('POST', '/api/v1/management/languages', {
      workspaceId,
      code: name === 'One' ? 'de' : 'fr',
    });
  }
  for (const list of [
    'surveys',
    'action-classes',
    'segments',
    'languages',
    'contact-attribute-keys',
    'attribute-classes',
  ]) {
    const url = `/api/v1/management/${list}`;
    const all = (await walk(api, url)).flat();
    const byOne = await walk(api, `${url}?limit=1`);
    t.ok(byOne.length > 1, list);
    t.strictSame(byOne.flat(), all, list);
  }
});

t.test('a page is bounded in bytes', async (t) => {
  const { id: surveyId } = await addSurvey(api, { name: 'Large' });
  const data = JSON.stringify({ q1: 'x'.repeat(500_000) });
  for (let i = 0; i < 20; i += 1) {
    await db
      .insertInto('responses')
      .values({ ...responseRow(`r${String(i).padStart(2, '0')}`, surveyId), data })
      .execute();
  }
  const url = '/api/v1/management/responses';
  const first = await api.manage('GET', url);
  t.ok(first.text.length <= LIST_PAGE_BYTES_MAX * 1.01, `${first.text.length}`);
  t.equal((await walk(api, url)).flat().length, 20, 'a client without a limit gets the rest by the link');
  const refused = await api.manage('GET', `${url}?limit=20`);
  t.equal(refused.status, 400, 'a client with a limit gets an error, because it expects so many rows');
  t.match(refused.json.details, { limit: /must not be more than 16/ });
  t.equal((await api.manage('GET', `${url}?limit=16`)).json.data.length, 16);
  const v2 = await api.manage('GET', '/api/v2/management/responses?limit=20');
  t.equal(v2.status, 400);
  t.match(v2.json.error.details, [{ field: 'limit', issue: /16/ }]);
});

t.test('what a reply repeats counts for the size of a page', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const user = `/api/v1/client/${workspaceId}/user`;
  const attributes = Object.fromEntries(Array.from({ length: 140 }, (_, i) => [`k${i}`, 'x'.repeat(2_000)]));
  const identified = await api.client('POST', user, { userId: 'u1', attributes });
  const contactId = String(identified.json.data.state.data.contactId);
  for (let i = 0; i < 8; i += 1) {
    const headline = 'x'.repeat(900_000);
    await addSurvey(api, { name: `Large ${i}`, questions: [{ id: 'q1', type: 'openText', headline }] });
  }
  const { id: surveyId } = await addSurvey(api);
  const contactAttributes = JSON.stringify(attributes);
  const rows = Array.from({ length: 14 }, (_, i) => ({
    ...responseRow(`r${i}`, surveyId),
    contactId,
    contactAttributes,
  }));
  await db.insertInto('responses').values(rows).execute();
  for (const url of ['/api/v1/management/surveys', '/api/v1/management/responses']) {
    const { text } = await api.manage('GET', url);
    t.ok(text.length <= LIST_PAGE_BYTES_MAX * 1.01, `${url}: ${text.length}`);
    t.ok((await walk(api, url)).flat().length >= 9, 'the next pages have the rest');
  }
});
