/** Concurrent requests for a unique value: one gets it, and every request gets a reply. */
import t, { type Test } from 'tap';
import { workspaceId } from '#test/support/api-app.ts';
import { protectedForm } from '#test/support/owner.ts';
import { openSurvey } from '#test/support/world.ts';
import { brokenInvariants } from './invariants.ts';
import { asKey, client, countByStatus, startTwins, WRITERS } from './twins.ts';

const { atOnce, first, twelve } = await startTwins(t);
const { api, world } = first;
const { db } = api.context;
const management = '/api/v1/management';
/** Runs a test, and then checks the invariants. */
function promise(name: string, work: (t: Test) => Promise<void>): void {
  t.test(name, async (t) => {
    await work(t);
    t.strictSame(await brokenInvariants(db), []);
  });
}

async function holdersOf(value: string): Promise<number> {
  return (await db.selectFrom('contactAttributes').select('id').where('value', '=', value).execute()).length;
}

async function makeSurvey(overrides: Record<string, unknown> = {}): Promise<string> {
  const reply = await api.manage('POST', `${management}/surveys`, {
    ...{ workspaceId, ...openSurvey, ...overrides },
  });
  return reply.json.data.id;
}

promise('an address that users of all apps and managers want has one of them', async (t) => {
  const email = 'everywhere@example.com';
  for (let i = 0; i < 4; i += 1) {
    await api.client('POST', `/api/v1/client/${workspaceId}/user`, { userId: `old${i}` });
  }
  const attributes = { email };
  const requests = [0, 1, 2, 3].flatMap((i) => [
    client('POST', 'user', { userId: `new${i}`, attributes }),
    client('PUT', `contacts/old${i}/attributes`, { attributes }),
    asKey('POST', '/api/v2/management/contacts', { workspaceId, attributes }),
  ]);
  const replies = await atOnce(requests);
  t.ok(
    replies.every(({ status }) => [200, 201, 409].includes(status)),
    JSON.stringify(countByStatus(replies)),
  );
  t.strictSame(countByStatus(replies.filter((_, i) => i % 3 === 0)), { 200: 4 });
  t.equal(await holdersOf(email), 1);
  const users = await db.selectFrom('contacts').select('id').where('userId', 'like', 'new%').execute();
  t.equal(users.length, 4, 'every user exists');
});

promise('a link for one use, a display: one response', async (t) => {
  const survey = await makeSurvey({ singleUse: { enabled: true, isEncrypted: false } });
  const links = await api.manage('GET', `${management}/surveys/${survey}/singleUseIds?limit=1`);
  const link = new URL(links.json.data[0]);
  const singleUseId = link.searchParams.get('suId');
  const used = { surveyId: survey, singleUseId, meta: { url: link.href }, finished: true, data: {} };
  t.strictSame(countByStatus(await twelve(client('POST', 'responses', used))), { 200: 1, 409: WRITERS - 1 });

  const plain = await makeSurvey();
  const display = await api.client('POST', `/api/v1/client/${workspaceId}/displays`, { surveyId: plain });
  const shown = { surveyId: plain, displayId: display.json.data.id, finished: false, data: {} };
  t.strictSame(countByStatus(await twelve(client('POST', 'responses', shown))), { 200: 1, 400: WRITERS - 1 });
});

promise('a slug', async (t) => {
  const body = { workspaceId, ...openSurvey, slug: 'wanted-slug' };
  t.strictSame(countByStatus(await twelve(asKey('POST', `${management}/surveys`, body))), {
    200: 1,
    409: WRITERS - 1,
  });
});

promise('a new user is one contact, whatever says so first', async (t) => {
  const surveyId = await makeSurvey();
  const requests = [0, 1, 2, 3].flatMap((i) => [
    client('POST', 'user', { userId: 'new user', attributes: { plan: `p${i}` } }),
    client('POST', 'displays', { surveyId, userId: 'new user' }),
    { method: 'GET', url: `/api/v1/client/${workspaceId}/identify/contacts/new%20user` },
  ]);
  t.strictSame(countByStatus(await atOnce(requests)), { 200: WRITERS });
  const found = await db.selectFrom('contacts').select('id').where('userId', '=', 'new user').execute();
  t.equal(found.length, 1);
});

promise('an address that signs up twelve times has one account, and few mails', async (t) => {
  const account = { name: 'Twelve', email: 'twelve@example.com', password: 'Password1' };
  const form = await protectedForm(world, account);
  const replies = await twelve({ method: 'POST', url: '/auth/signup', ...form });
  t.strictSame(countByStatus(replies), { 303: WRITERS });
  const users = await db.selectFrom('users').select('id').where('email', '=', account.email).execute();
  t.equal(users.length, 1);
  const mails = await db
    .selectFrom('mailOutbox')
    .select('id')
    .where('recipient', '=', account.email)
    .execute();
  t.equal(mails.length, 5, 'an address gets five mails in an hour');
});

promise('a person has at most 50 sessions', async (t) => {
  const fields = { email: 'owner@example.com', password: 'Password1', json: 'true' };
  const form = await protectedForm(world, fields);
  const login = { method: 'POST', url: '/api/auth/callback/credentials', ...form };
  for (let i = 0; i < 5; i += 1) t.strictSame(countByStatus(await twelve(login)), { 200: WRITERS });
  const owner = await db
    .selectFrom('users')
    .select('id')
    .where('email', '=', fields.email)
    .executeTakeFirstOrThrow();
  const sessions = await db
    .selectFrom('sessions')
    .select('hashedToken')
    .where('userId', '=', owner.id)
    .execute();
  t.equal(sessions.length, 50);
});
