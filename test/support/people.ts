/** Inserts people and their memberships into the database of an API in this process. */
import type { Role } from '#api/db/schema.ts';
import type { TestApi } from './api-app.ts';
import { type Browser, openBrowser } from './login.ts';

/** The organization of the first start. */
export async function firstOrganization(api: TestApi): Promise<string> {
  const { id } = await api.context.db
    .selectFrom('organizations')
    .select('id')
    .where('isOperators', '=', 1)
    .executeTakeFirstOrThrow();
  return id;
}

const password = 'Password1';
let passwordHash: Promise<string> | null = null;

export interface Person {
  readonly id: string;
  readonly email: string;
  readonly browser: Browser;
}

/** Creates an account and logs in. @param role in the first organization; null for none */
export async function addPerson(api: TestApi, name: string, role: Role | null): Promise<Person> {
  const { db, clock, passwords } = api.context;
  const createdAt = new Date(clock()).toISOString();
  const id = `user${name.toLowerCase()}`;
  const email = `${name.toLowerCase()}@example.com`;
  passwordHash ??= passwords.hash(password);
  await db
    .insertInto('users')
    .values({
      id,
      createdAt,
      updatedAt: createdAt,
      name,
      email,
      emailVerified: createdAt,
      passwordHash: await passwordHash,
      isActive: 1,
      identityProvider: 'email',
      notificationSettings: '{}',
      locale: 'en-US',
      lastLoginAt: null,
    })
    .execute();
  if (role !== null) {
    const organizationId = await firstOrganization(api);
    await db.insertInto('memberships').values({ organizationId, userId: id, role, createdAt }).execute();
  }
  const browser = openBrowser(api);
  await browser.logIn(email, password);
  return { id, email, browser };
}
