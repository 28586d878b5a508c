/** Inserts people and their memberships into the database of an API in this process. */
import { hashApiKey } from '#api/auth/api-key.ts';
import type { Role } from '#api/db/schema.ts';
import { deleteOrganizations } from '#api/resources/organizations/deletion.ts';
import { workspaceId as firstWorkspace, type TestApi } from './api-app.ts';
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

/** Makes a key for all workspaces of the person's organization, on the account page. @returns the key */
export async function makeKey(browser: Browser, label: string): Promise<string> {
  const page = await browser.call('GET', '/account', undefined, { accept: 'text/html' });
  const reach = /<option value="(\w+)">All/.exec(page.text)?.[1] ?? '';
  const made = await browser.form('/account/api-keys', { label, reach, permission: 'manage' });
  const key = /<code>(fbk_[\w-]{43})</.exec(made.text)?.[1];
  if (key === undefined) throw new Error(`No key: ${made.status} ${made.text}`);
  return key;
}

/** Creates another organization with a workspace. @returns a key that manages it */
export async function addOrganization(api: TestApi, workspaceId: string): Promise<string> {
  const { db, clock } = api.context;
  const createdAt = new Date(clock()).toISOString();
  const organizationId = `org${workspaceId}`;
  const row = { createdAt, updatedAt: createdAt, id: organizationId, name: 'Other', isOperators: 0 } as const;
  await db.insertInto('organizations').values(row).execute();
  await api.addWorkspace(workspaceId);
  await db.updateTable('workspaces').set({ organizationId }).where('id', '=', workspaceId).execute();
  const key = await api.addKey({ [workspaceId]: 'manage' });
  const ofKey = db.updateTable('apiKeys').set({ organizationId }).where('hashedKey', '=', hashApiKey(key));
  await ofKey.execute();
  return key;
}

/** Deletes the first organization, as the removal of its only owner deletes any other one, and what is remembered of it. */
export async function deleteFirstOrganization(api: TestApi): Promise<void> {
  const { db, clock, states } = api.context;
  await deleteOrganizations(db, [await firstOrganization(api)], new Date(clock()).toISOString());
  states.purge(firstWorkspace);
}
