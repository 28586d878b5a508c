/** Unverified accounts are deleted. Accounts that were used stay. */
import t, { type Test } from 'tap';
import { readConfig } from '#api/config.ts';
import { endAccounts } from '#api/jobs/scheduled-jobs.ts';
import { unverifiedUsers } from '#api/resources/accounts/expiry.ts';
import { createOrganization } from '#api/resources/organizations/create.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { startApi, type TestApi } from '#test/support/api-app.ts';
import { planOf } from '#test/support/query-plan.ts';

const DAY = 86_400_000;

async function begin(t: Test, env: Record<string, string> = {}) {
  const api = await startApi(t, { env });
  const { db, random } = api.context;
  const now = () => toTimestamp(api.context.clock());
  const idOf = async (email: string): Promise<string> =>
    (await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirstOrThrow()).id;
  return {
    api,
    db,
    now,
    idOf,
    async signUp(name: string): Promise<string> {
      const email = `${name}@example.com`;
      await api.client('POST', '/api/auth/signup', { name, email, password: 'Password1' });
      return idOf(email);
    },
    organizationOf: (ownerId: string) =>
      db
        .transaction()
        .execute((trx) =>
          createOrganization(
            trx,
            { name: 'O', ownerId, workspaceId: null, isOperators: false, createdAt: now() },
            random,
          ),
        ),
    run: () => endAccounts(api.context, () => false, { info: () => undefined, warn: () => undefined }),
    async left(): Promise<readonly string[]> {
      const rows = await db.selectFrom('users').select('name').orderBy('name').execute();
      return rows.map(({ name }) => name).filter((name) => name !== 'Owner');
    },
    organizations: async () => (await db.selectFrom('organizations').select('id').execute()).length - 1,
  };
}

const post = (api: TestApi, path: string, body: object) => api.client('POST', path, body);

t.test('an unverified account is deleted after thirty days, and its address is free again', async (t) => {
  const { api, signUp, run, left } = await begin(t);
  await signUp('ada');
  api.advance(30 * DAY);
  await run();
  t.same(await left(), ['ada'], 'an account is deleted exactly at its time');
  api.advance(1);
  await run();
  t.same(await left(), []);
  await signUp('ada');
  t.same(await left(), ['ada']);
  t.equal(readConfig({}, '/').config.unverifiedAccountDays, 30);
});

t.test('deletes its organization too if it has no other members and no data', async (t) => {
  const { api, db, signUp, organizationOf, run, left, organizations } = await begin(t);
  const organization = await organizationOf(await signUp('empty'));
  t.equal(await organizations(), 1);
  api.advance(31 * DAY);
  await run();
  t.same([await left(), await organizations()], [[], 0]);
  const workspaces = await db.selectFrom('workspaces').select('id').execute();
  t.notOk(workspaces.some(({ id }) => id === organization.workspaceId));
});

t.test('keeps an account that was used in any way', async (t) => {
  const { api, db, now, signUp, organizationOf, run, left, organizations, idOf } = await begin(t);
  const row = { createdAt: now(), updatedAt: now() };
  const used: Record<string, () => Promise<unknown>> = {
    async verified() {
      await db.updateTable('users').set({ emailVerified: now() }).where('name', '=', 'verified').execute();
    },
    async loggedin() {
      await db.updateTable('users').set({ lastLoginAt: now() }).where('name', '=', 'loggedin').execute();
    },
    async session() {
      const userId = await idOf('session@example.com');
      const expiresAt = '2030-01-01T00:00:00.000Z';
      await db
        .insertInto('sessions')
        .values({ hashedToken: 'x', userId, createdAt: now(), expiresAt })
        .execute();
    },
    async survey() {
      const { workspaceId } = await organizationOf(await idOf('survey@example.com'));
      await db
        .insertInto('surveys')
        .values({
          ...{ ...row, id: 's', workspaceId, name: 'S', type: 'link', status: 'draft', createdBy: null },
          ...{
            slug: null,
            segmentId: null,
            archivedAt: null,
            publishOn: null,
            closeOn: null,
            document: '{}',
          },
        })
        .execute();
    },
    async key() {
      const { organizationId } = await organizationOf(await idOf('key@example.com'));
      await db
        .insertInto('apiKeys')
        .values({
          ...{
            id: 'k',
            organizationId,
            label: 'K',
            hashedKey: 'k',
            organizationRead: 1,
            organizationWrite: 1,
          },
          ...{ createdBy: null, createdAt: now(), lastUsedAt: null },
        })
        .execute();
    },
    async shared() {
      const { organizationId } = await organizationOf(await idOf('shared@example.com'));
      const userId = await idOf('owner@example.com');
      await db
        .insertInto('memberships')
        .values({ organizationId, userId, role: 'member', createdAt: now() })
        .execute();
    },
    async member() {
      const { id: organizationId } = await db
        .selectFrom('organizations')
        .select('id')
        .limit(1)
        .executeTakeFirstOrThrow();
      const userId = await idOf('member@example.com');
      await db
        .insertInto('memberships')
        .values({ organizationId, userId, role: 'member', createdAt: now() })
        .execute();
    },
  };
  for (const [name, use] of Object.entries(used)) {
    await signUp(name);
    await use();
  }
  await signUp('unused');
  const before = await organizations();
  api.advance(365 * DAY);
  await run();
  t.same(await left(), Object.keys(used).sort());
  t.equal(await organizations(), before);
});

t.test('a repeated sign-up or a valid link starts the time again', async (t) => {
  const { api, signUp, run, left } = await begin(t);
  await signUp('again');
  await signUp('link');
  await signUp('old');
  api.advance(30 * DAY);
  await signUp('again');
  await post(api, '/api/auth/resend-verification', { email: 'link@example.com' });
  api.advance(1);
  await run();
  t.same(await left(), ['again', 'link']);
});

t.test('0 keeps all accounts; the job reads an index and may need several steps', async (t) => {
  const { api, db, now, signUp, run, left } = await begin(t, { UNVERIFIED_ACCOUNT_DAYS: '0' });
  await signUp('kept');
  api.advance(999 * DAY);
  await run();
  t.same(await left(), ['kept']);
  const plan = await planOf(db, unverifiedUsers(db, now(), ''));
  t.match(plan, [/SEARCH users USING INDEX users_unverified \(id>\?\)/]);
});
