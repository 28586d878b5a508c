/** What replies about segments do not show, and their size. The rest is in test/conversations/segments.md. */
import t from 'tap';
import { surveysOfSegments } from '#api/resources/segments/store.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { planOf, queriesOf } from '#test/support/query-plan.ts';

const api = await startApi(t);
const { db } = api.context;
const path = '/api/v1/management/segments';
const node = (root: unknown, operator: string, value: unknown) => ({
  id: 'n',
  connector: null,
  resource: { id: 'r', root, value, qualifier: { operator } },
});

t.test('reads the surveys of segments by an index', async (t) => {
  const [surveys] = await queriesOf(db, (on) => surveysOfSegments(on, ['a', 'b'], 5));
  if (surveys === undefined) return t.fail('the request ran no query');
  t.match((await planOf(db, surveys))[0], /^SEARCH surveys USING INDEX surveys_segmentId/);
});

t.test('400: more than 64 KiB of filters, or 1 MiB in a workspace', async (t) => {
  const fresh = await startApi(t);
  const filtersOf = (length: number) => [
    node({ type: 'attribute', contactAttributeKey: 'plan' }, 'equals', 'x'.repeat(length)),
  ];
  const send = (title: string, length: number) =>
    fresh.manage('POST', path, { workspaceId, title, filters: filtersOf(length) });
  const tooLarge = await send('too large', 65_536);
  t.equal(tooLarge.status, 400);
  t.match(tooLarge.json.details, { filters: /64 KiB/ });

  const made: string[] = [];
  for (let i = 0; i < 16; i += 1) {
    const reply = await send(`s${i}`, 65_000);
    t.equal(reply.status, 200);
    made.push(reply.json.data.id);
  }
  const full = await send('one more', 65_000);
  t.equal(full.status, 400);
  t.match(full.json.details, { filters: /all segments of a workspace .* 1 MiB/ });
  t.equal((await send('small', 1_000)).status, 200, 'a small segment still fits');

  const survey = await addSurvey(fresh, { type: 'app' });
  const change = (id: string, length: number) =>
    fresh.manage('PUT', `${path}/${id}`, { filters: filtersOf(length) });
  t.equal((await change(survey.segment.id, 60_000)).status, 400, 'private segments count too');
  const [first = '', second = ''] = made;
  await fresh.context.db
    .updateTable('segments')
    .set({ filters: JSON.stringify(filtersOf(500_000)) })
    .where('id', '=', second)
    .execute();
  t.equal((await change(first, 64_000)).status, 200, 'a workspace over the limit may shrink a segment');
  t.equal((await change(first, 64_500)).status, 400, 'it may not grow one');
});
