/** Most responses are created with one statement. Those with further effects need a transaction. */
import t, { type Test } from 'tap';
import { deleteContact } from '#api/resources/contacts/deletion.ts';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { insertDisplay } from '#api/resources/displays/store.ts';
import type { Respondent } from '#api/resources/responses/insert.ts';
import { findResponse, type Response } from '#api/resources/responses/store.ts';
import { createResponse, createResponseAlone } from '#api/resources/responses/write.ts';
import { findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { queriesOf } from '#test/support/query-plan.ts';
import { given, now } from './new-response.ts';

const display = { workspaceId, contactId: null, createdAt: now, updatedAt: now };
const webhook = { workspaceId, url: 'https://hooks.example.com/', triggers: ['responseCreated'] };

async function start(t: Test) {
  let notified = 0;
  const api = await startApi(t, {
    parts: ({ outbox }) => ({
      outbox: {
        ...outbox,
        notify() {
          notified += 1;
        },
      },
    }),
  });
  const { id } = await addSurvey(api);
  const survey = await findAnsweredSurvey(api.context.db, id);
  if (survey === null) throw new Error('no survey');
  return { ...api, survey, notified: () => notified };
}

type Api = Awaited<ReturnType<typeof start>>;

const check = { mustBeOpen: true };
const lone = (
  { context, survey }: Api,
  respondent: Respondent | null = null,
  db = context.db,
  displayId: string | null = null,
) => createResponseAlone({ ...context, db }, survey, { ...given, displayId }, respondent, check);

const create = (api: Api) => createResponse(api.context, api.survey, given, null, check);

const idOf = (response: Response | null) => response?.id ?? '';

const rowsOf = ({ context }: TestApi) =>
  context.db.selectFrom('responses').select(['id', 'contactId', 'finished']).execute();

t.test('one statement inserts a response', async (t) => {
  const api = await start(t);
  const queries = await queriesOf(api.context.db, (db) => lone(api, null, db));
  t.equal(queries.length, 1);
  const [row] = await rowsOf(api);
  t.equal(row?.finished, 1);
  t.equal(api.notified(), 0, 'no worker is woken without an event');
});

t.test('one statement inserts a response with its contact', async (t) => {
  const api = await start(t);
  const { db, random } = api.context;
  await api.addWorkspace('ws2');
  const { id } = await findOrCreateContact(db, workspaceId, 'u', now, random);
  await findOrCreateContact(db, 'ws2', 'of another workspace', now, random);
  const odd = 'a "quoted" \\ name\n\u00e9\u{1F600}';
  await db
    .insertInto('contactAttributes')
    .columns(['id', 'createdAt', 'updatedAt', 'contactId', 'attributeKeyId', 'value'])
    .expression(({ selectFrom, val }) =>
      selectFrom('contactAttributeKeys')
        .select([val('attribute').as('id'), val(now).as('createdAt'), val(now).as('updatedAt')])
        .select([val(id).as('contactId'), 'contactAttributeKeys.id as attributeKeyId', val(odd).as('value')])
        .where('workspaceId', '=', workspaceId)
        .where('key', '=', 'firstName'),
    )
    .execute();
  const survey = await findAnsweredSurvey(db, api.survey.id);
  if (survey === null) throw new Error('no survey');
  const written = async (respondent: Respondent) => {
    let made: Response | null = null;
    const queries = await queriesOf(db, async (recording) => {
      made = await lone({ ...api, survey }, respondent, recording);
    });
    t.equal(queries.length, 1);
    const stored = await findResponse(db, idOf(made));
    t.strictSame(made, stored);
    const { contactAttributes, contactId } = stored ?? {};
    return { contactId, contactAttributes, keys: Object.keys(contactAttributes ?? {}) };
  };
  const known = {
    ...{ contactId: id, contactAttributes: { firstName: odd, userId: 'u' } },
    keys: ['firstName', 'userId'],
  };
  t.strictSame(await written({ by: 'userId', value: 'u' }), known);
  t.strictSame(await written({ by: 'id', value: id }), known);
  const nobody = { contactId: null, contactAttributes: null, keys: [] };
  t.strictSame(await written({ by: 'userId', value: 'nobody' }), nobody);
  t.strictSame(await written({ by: 'userId', value: 'of another workspace' }), nobody);
  await db.deleteFrom('contactAttributes').execute();
  t.strictSame(await written({ by: 'id', value: id }), { contactId: id, contactAttributes: {}, keys: [] });
});

t.test('one statement inserts a response to a display', async (t) => {
  const api = await start(t);
  const { db, random } = api.context;
  const { id } = await findOrCreateContact(db, workspaceId, 'u', now, random);
  const survey = await findAnsweredSurvey(db, api.survey.id);
  if (survey === null) throw new Error('no survey');
  const user = { by: 'userId', value: 'u' } as const;
  const nobody = { by: 'userId', value: 'nobody' } as const;
  const cases: readonly [contactId: string | null, Respondent | null][] = [
    [null, null],
    [null, user],
    [id, null],
    [id, user],
    [id, { by: 'id', value: id }],
    [id, nobody],
  ];
  for (const [contactId, respondent] of cases) {
    const displayId = newId(random);
    await insertDisplay(db, { ...display, id: displayId, surveyId: survey.id, contactId });
    let made: Response | null = null;
    const queries = await queriesOf(db, async (recording) => {
      made = await lone({ ...api, survey }, respondent, recording, displayId);
    });
    t.equal(queries.length, 1);
    const isKnown = respondent !== null && respondent !== nobody;
    t.match(await findResponse(db, idOf(made)), { displayId, contactId: isKnown ? id : null });
  }
});

t.test('a display of another survey: writes nothing, and the transaction gives the reason', async (t) => {
  const api = await start(t);
  const { context } = api;
  const { db, random } = context;
  const contact = await findOrCreateContact(db, workspaceId, 'u', now, random);
  const other = await findOrCreateContact(db, workspaceId, 'other', now, random);
  const survey = await findAnsweredSurvey(db, api.survey.id);
  if (survey === null) throw new Error('no survey');
  const show = async (surveyId: string, contactId: string | null = null): Promise<string> => {
    const id = newId(random);
    await insertDisplay(db, { ...display, id, surveyId, contactId });
    return id;
  };
  const taken = await show(survey.id);
  t.ok(await lone({ ...api, survey }, null, db, taken));
  const cases = [
    [newId(random), /not found/],
    ['no id', /not found/],
    [await show((await addSurvey(api)).id), /another survey/],
    [await show(survey.id, other.id), /another contact/],
  ] as const;
  const user = { by: 'userId', value: 'u' } as const;
  // A change of the other survey has also changed this one's version in SQLite.
  const again = await findAnsweredSurvey(db, survey.id);
  if (again === null) throw new Error('no survey');
  for (const [displayId, message] of cases) {
    t.equal(await lone({ ...api, survey: again }, user, db, displayId), null);
    await t.rejects(createResponse(context, again, { ...given, displayId }, user, check), { message });
  }
  await t.rejects(lone({ ...api, survey: again }, user, db, taken), { message: /already linked/ });
  t.equal((await rowsOf(api)).length, 1);
  t.ok(await lone({ ...api, survey: again }, user, db, await show(survey.id, contact.id)));
});

t.test('a contact deleted at the same moment: the response has it or is anonymous', async (t) => {
  const api = await start(t);
  const { db, random } = api.context;
  await api.manage('POST', '/api/v1/webhooks', webhook);
  const survey = await findAnsweredSurvey(db, api.survey.id);
  if (survey === null) throw new Error('no survey');
  for (let i = 0; i < 20; i += 1) {
    const { id } = await findOrCreateContact(db, workspaceId, 'u', now, random);
    const [{ contactId }] = await Promise.all([
      createResponse(api.context, i % 2 === 0 ? survey : api.survey, given, { by: 'id', value: id }, check),
      deleteContact(db, id),
    ]);
    t.ok(contactId === null || contactId === id);
  }
  t.equal((await rowsOf(api)).filter(({ contactId }) => contactId !== null).length, 0);
});

t.test('a webhook gets the event', async (t) => {
  const api = await start(t);
  const { context, survey } = api;
  t.equal(survey.hasWebhooks, false);
  const made = await api.manage('POST', '/api/v1/webhooks', webhook);
  t.equal(made.status, 200);
  const known = await findAnsweredSurvey(context.db, survey.id);
  t.equal(known?.hasWebhooks, true);
  if (known === null) return;
  await create({ ...api, survey: known });
  t.equal((await context.db.selectFrom('events').select('id').execute()).length, 2);
  t.equal(api.notified(), 1);
});
