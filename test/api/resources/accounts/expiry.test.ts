/** Unverified accounts are deleted. Accounts that were used stay. */
import t, { type Test } from 'tap';
import { endAccounts } from '#api/jobs/scheduled-jobs.ts';
import { unusedAccounts } from '#api/resources/accounts/expiry.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { startApi } from '#test/support/api-app.ts';
import { openBrowser, signUp } from '#test/support/login.ts';
import { planOf } from '#test/support/query-plan.ts';

const DAY = 86_400_000;

async function begin(t: Test) {
  const api = await startApi(t);
  const { db } = api.context;
  const now = () => toTimestamp(api.context.clock());
  const idOf = async (email: string): Promise<string> =>
    (await db.selectFrom('users').select('id').where('email', '=', email).executeTakeFirstOrThrow()).id;
  return {
    api,
    db,
    now,
    idOf,
    async signUpAs(name: string): Promise<string> {
      const email = `${name}@example.com`;
      await signUp(api, { name, email, password: 'Password1' });
      return idOf(email);
    },
    run: () => endAccounts(api.context, () => false, { info: () => undefined, warn: () => undefined }),
    organizationId: (await db.selectFrom('organizations').select('id').executeTakeFirstOrThrow()).id,
    async left(): Promise<readonly string[]> {
      const rows = await db.selectFrom('users').select('name').orderBy('name').execute();
      return rows.map(({ name }) => name).filter((name) => name !== 'Owner');
    },
  };
}

t.test('an unverified account is deleted after thirty days, and its address is free again', async (t) => {
  const { api, signUpAs, run, left } = await begin(t);
  await signUpAs('ada');
  api.advance(30 * DAY);
  await run();
  t.same(await left(), ['ada'], 'an account is deleted exactly at its time');
  api.advance(1);
  await run();
  t.same(await left(), []);
  await signUpAs('ada');
  t.same(await left(), ['ada']);
});

t.test('keeps an account that was used in any way', async (t) => {
  const { api, db, now, signUpAs, organizationId, run, left, idOf } = await begin(t);
  const used: Record<string, () => Promise<unknown>> = {
    async verified() {
      await db.updateTable('users').set({ emailVerified: now() }).where('name', '=', 'verified').execute();
    },
    async member() {
      const userId = await idOf('member@example.com');
      await db
        .insertInto('memberships')
        .values({ organizationId, userId, role: 'member', createdAt: now() })
        .execute();
    },
  };
  for (const [name, use] of Object.entries(used)) {
    await signUpAs(name);
    await use();
  }
  await signUpAs('unused');
  api.advance(365 * DAY);
  await run();
  t.same(await left(), Object.keys(used).sort());
});

t.test('a repeated sign-up or a valid link starts the time again', async (t) => {
  const { api, signUpAs, run, left } = await begin(t);
  await signUpAs('again');
  await signUpAs('link');
  await signUpAs('old');
  api.advance(30 * DAY);
  await signUpAs('again');
  await openBrowser(api).form('/auth/verification-requested', { email: 'link@example.com' });
  api.advance(1);
  await run();
  t.same(await left(), ['again', 'link']);
});

t.test('the job reads an index of unverified accounts', async (t) => {
  const { db, now } = await begin(t);
  const plan = await planOf(db, unusedAccounts(db, { before: now(), now: now() }, 200));
  t.match(plan[0], /SCAN users USING INDEX users_unverified/);
});
