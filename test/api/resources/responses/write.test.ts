/** Everything that a response depends on is read in its transaction, so it fits its contact, its display and its survey. */
import t, { type Test } from 'tap';
import { deleteContact } from '#api/resources/contacts/deletion.ts';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { insertDisplay } from '#api/resources/displays/store.ts';
import { findResponse } from '#api/resources/responses/store.ts';
import { createResponse, type Respondent } from '#api/resources/responses/write.ts';
import { newId } from '#api/values/ids.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { given, now } from './new-response.ts';

const webhook = {
  workspaceId,
  url: 'https://hooks.example.com/',
  triggers: ['responseCreated', 'responseFinished'],
};

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
  const { context } = api;
  const { db, random } = context;
  const { id: surveyId } = await addSurvey(api);
  const contact = (userId: string, of = workspaceId) => findOrCreateContact(db, of, userId, now, random);
  const create = async (respondent: Respondent | null = null, displayId: string | null = null) => {
    const made = await createResponse(context, surveyId, () => ({ ...given, respondent, displayId }));
    t.strictSame(await findResponse(db, made.id), made);
    return made;
  };
  const show = async (of: string, contactId: string | null = null): Promise<string> => {
    const id = newId(random);
    await insertDisplay(db, {
      id,
      surveyId: of,
      workspaceId,
      contactId,
      createdAt: now,
      updatedAt: now,
    });
    return id;
  };
  return { ...api, db, surveyId, contact, create, show, notified: () => notified };
}

t.test('a response has its contact, and a copy of the attributes in the order of their keys', async (t) => {
  const { addWorkspace, contact, create, db } = await start(t);
  await addWorkspace('ws2');
  const { id } = await contact('u');
  await contact('of another workspace', 'ws2');
  const odd = 'a "quoted" \\ name\n\u00e9\u{1F600}';
  const { id: attributeKeyId } = await db
    .selectFrom('contactAttributeKeys')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('key', '=', 'firstName')
    .executeTakeFirstOrThrow();
  await db
    .insertInto('contactAttributes')
    .values({
      id: 'attribute',
      createdAt: now,
      updatedAt: now,
      contactId: id,
      attributeKeyId,
      value: odd,
      uniqueDigest: null,
    })
    .execute();
  const known = { contactId: id, contactAttributes: { firstName: odd, userId: 'u' } };
  const nobody = { contactId: null, contactAttributes: null };
  const cases: readonly (readonly [Respondent | null, object])[] = [
    [{ by: 'userId', value: 'u' }, known],
    [{ by: 'id', value: id }, known],
    [{ by: 'userId', value: 'nobody' }, nobody],
    [{ by: 'userId', value: 'of another workspace' }, nobody],
    [null, nobody],
  ];
  for (const [respondent, expected] of cases) {
    const { contactAttributes, contactId } = await create(respondent);
    t.strictSame({ contactId, contactAttributes }, expected);
    t.strictSame(Object.keys(contactAttributes ?? {}), contactId === null ? [] : ['firstName', 'userId']);
  }
  await db.deleteFrom('contactAttributes').execute();
  t.match(await create({ by: 'id', value: id }), { contactId: id, contactAttributes: {} });
});

t.test('a display fits if it is of the survey, and of the same contact or of nobody known', async (t) => {
  const api = await start(t);
  const { contact, create, show, surveyId } = api;
  const { id } = await contact('u');
  const other = await contact('other');
  const user: Respondent = { by: 'userId', value: 'u' };
  const fitting: readonly (readonly [contactId: string | null, Respondent | null])[] = [
    [null, null],
    [null, user],
    [id, null],
    [id, user],
    [id, { by: 'userId', value: 'nobody' }],
  ];
  for (const [contactId, respondent] of fitting) {
    const displayId = await show(surveyId, contactId);
    t.match(await create(respondent, displayId), { displayId, contactId: respondent === user ? id : null });
  }
  for (const displayId of ['no id', await show(surveyId, other.id)]) await t.rejects(create(user, displayId));
});

t.test('a contact deleted at the same moment: the response has it or is anonymous', async (t) => {
  const { contact, context, db, surveyId } = await start(t);
  for (let i = 0; i < 20; i += 1) {
    const { id } = await contact('u');
    const respondent = { by: 'id', value: id } as const;
    const [{ contactId }] = await Promise.all([
      createResponse(context, surveyId, () => ({ ...given, respondent })),
      deleteContact(db, id),
    ]);
    t.ok(contactId === null || contactId === id);
  }
  const left = await db.selectFrom('responses').select('id').where('contactId', 'is not', null).execute();
  t.strictSame(left, []);
});

t.test(
  'a webhook gets an event for the creation and one for the end; nobody is told without one',
  async (t) => {
    const { create, db, manage, notified } = await start(t);
    await create();
    t.equal(notified(), 0);
    t.equal((await manage('POST', '/api/v1/webhooks', webhook)).status, 200);
    await create();
    t.equal(notified(), 1);
    const events = await db.selectFrom('events').select('type').execute();
    t.strictSame(events.map(({ type }) => type).sort(), ['responseCreated', 'responseFinished']);
  },
);

t.test('a reCAPTCHA token is verified once, and not for a survey that is closed', async (t) => {
  let asked = 0;
  const verify = async (): Promise<boolean> => {
    asked += 1;
    return asked < 3;
  };
  const api = await startApi(t, { parts: () => ({ recaptcha: { siteKey: 'site', verify } }) });
  const recaptcha = { enabled: true, threshold: 0.5 };
  const { id } = await addSurvey(api, { recaptcha });
  const send = (surveyId: string, recaptchaToken?: string) =>
    api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
      ...{ surveyId, finished: true, data: { q1: 'x' }, recaptchaToken },
    });
  for (const status of [200, 200, 400]) t.equal((await send(id, 'token')).status, status);
  t.equal(asked, 3);
  t.equal((await send(id)).json.message, 'Missing recaptcha token');
  const paused = await addSurvey(api, { recaptcha, status: 'paused' });
  t.equal((await send(paused.id, 'token')).status, 403);
  t.equal(asked, 3);
});
