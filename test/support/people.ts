/** Inserts people and their memberships into the database of an API in this process. */
import type { Role, TeamPermission, TeamRole } from '#api/db/schema.ts';
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

/** Gives the first key every right on all workspaces and on the organization, as only an owner can. */
export async function widenFirstKey({ context: { db } }: Pick<TestApi, 'context'>): Promise<void> {
  await db.updateTable('apiKeys').set({ allWorkspaces: 'manage', organizationWrite: 1 }).execute();
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

/** @param members role by user id @param workspaces permission by workspace id @returns the team's id */
export async function addTeam(
  api: TestApi,
  name: string,
  members: Readonly<Record<string, TeamRole>>,
  workspaces: Readonly<Record<string, TeamPermission>>,
): Promise<string> {
  const { db, clock } = api.context;
  const createdAt = new Date(clock()).toISOString();
  const row = { createdAt, updatedAt: createdAt };
  const teamId = `team${name.toLowerCase()}`;
  const organizationId = await firstOrganization(api);
  await db
    .insertInto('teams')
    .values({ ...row, id: teamId, organizationId, name })
    .execute();
  for (const [userId, role] of Object.entries(members)) {
    await db.insertInto('teamMembers').values({ teamId, userId, role, createdAt }).execute();
  }
  for (const [workspaceId, permission] of Object.entries(workspaces)) {
    await db
      .insertInto('teamWorkspaces')
      .values({ ...row, teamId, workspaceId, permission })
      .execute();
  }
  return teamId;
}
