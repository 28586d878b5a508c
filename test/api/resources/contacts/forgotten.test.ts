/** After the deletion of a contact, its data is gone everywhere, and its answers stay. */
import t from 'tap';
import type { Tables } from '#api/db/schema.ts';
import { insertMail } from '#api/mail/mailer.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { column } from '#test/support/column.ts';

const client = `/api/v1/client/${workspaceId}`;
const secrets = ['ann-of-the-moor', 'ann@example.com', 'Moorland'];

t.test('responses, events, deliveries and sent mails name it no more', async (t) => {
  const api = await startApi(t);
  const { db, clock, random } = api.context;
  const hook = {
    workspaceId,
    url: 'https://hooks.example.com/',
    triggers: ['responseCreated'],
    surveyIds: [],
  };
  t.equal((await api.manage('POST', '/api/v1/webhooks', hook)).status, 200);
  const { id: surveyId } = await addSurvey(api);
  const respond = async (userId: string, answer: string): Promise<string> => {
    const body = { surveyId, userId, finished: false, data: { q1: answer } };
    return (await api.client('POST', `${client}/responses`, body)).json.data.id;
  };
  for (const [userId, email] of [
    ['ann-of-the-moor', 'ann@example.com'],
    ['bob', 'bob@example.com'],
  ] as const) {
    const attributes = { email, lastName: userId === 'bob' ? 'Miller' : 'Moorland' };
    t.equal((await api.client('POST', `${client}/user`, { userId, attributes })).status, 200);
  }
  const contact = await db
    .selectFrom('contacts')
    .select('id')
    .where('userId', '=', 'ann-of-the-moor')
    .executeTakeFirstOrThrow();

  const [first] = [await respond('ann-of-the-moor', 'the answer'), await respond('bob', 'another')];
  await respond('ann-of-the-moor', 'later');
  // More than one slice.
  for (let i = 0; i < 45; i += 1) await respond('ann-of-the-moor', String(i));
  for (const [kind, to] of [
    ['surveyLink', 'ann@example.com'],
    ['surveyFollowUp', 'ann@example.com'],
    ['surveyLink', 'bob@example.com'],
  ] as const) {
    const mail = { kind, to, subject: `To ${to}`, body: '' };
    const id = await insertMail(db, mail, clock(), random);
    await db.updateTable('mailOutbox').set({ status: 'sent', dueAt: null }).where('id', '=', id).execute();
  }
  const stored = async (): Promise<string> => {
    const tables: (keyof Tables)[] = ['contacts', 'contactAttributes', 'responses', 'events', 'mailOutbox'];
    return JSON.stringify(
      await Promise.all(tables.map((table) => db.selectFrom(table).selectAll().execute())),
    );
  };
  const before = await stored();
  for (const secret of [...secrets, contact.id]) t.ok(before.includes(secret), `${secret} is stored`);

  t.equal((await api.manage('DELETE', `/api/v1/management/contacts/${contact.id}`)).status, 200);

  const after = await stored();
  for (const secret of [...secrets, contact.id]) t.notOk(after.includes(secret), `${secret} is gone`);
  for (const kept of ['the answer', 'bob@example.com', 'Miller', 'To bob@example.com']) {
    t.ok(after.includes(kept), `${kept} stays`);
  }
  t.match((await api.manage('GET', `/api/v1/management/responses/${first}`)).json.data, {
    data: { q1: 'the answer' },
    contact: null,
    contactAttributes: null,
    personAttributes: null,
  });
  const payloads = await db.selectFrom('events').select('payload').execute();
  t.equal(payloads.length, 48, 'every event keeps its delivery');
  for (const { payload } of payloads)
    t.match(JSON.parse(payload), { event: 'responseCreated', data: { data: Object } });
});

t.test('a mail that is not about a survey stays, and so does one that waits', async (t) => {
  const api = await startApi(t);
  const { db, clock, random } = api.context;
  const attributes = { email: 'owner@example.com' };
  await api.client('POST', `${client}/user`, { userId: 'owner', attributes });
  const mail = { to: 'owner@example.com', subject: 'x', body: 'x' };
  await insertMail(db, { ...mail, kind: 'surveyLink' }, clock(), random);
  const account = await insertMail(db, { ...mail, kind: 'resetPassword' }, clock(), random);
  await db.updateTable('mailOutbox').set({ status: 'sent', dueAt: null }).where('id', '=', account).execute();
  const { id } = await db.selectFrom('contacts').select('id').executeTakeFirstOrThrow();
  t.equal((await api.manage('DELETE', `/api/v1/management/people/${id}`)).status, 200);
  const left = await db.selectFrom('mailOutbox').select('recipient').execute();
  t.strictSame(column(left, 'recipient'), ['owner@example.com', 'owner@example.com']);
});
