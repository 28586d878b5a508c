/** Properties of the rows of every database, after any concurrent writes. */
import { sql } from 'kysely';
import type { Database } from '#api/db/schema.ts';

/** Each query finds rows that should not exist. */
const checks: Readonly<Record<string, string>> = {
  'an address, or another value that one contact has, has one': `
    select k."workspaceId", a."value" from "contactAttributes" a
    join "contactAttributeKeys" k on k."id" = a."attributeKeyId" where k."isUnique" = 1
    group by k."workspaceId", k."id", a."value" having count(*) > 1`,
  'a user id has one contact': `
    select "workspaceId", "userId" from "contacts" where "userId" is not null
    group by "workspaceId", "userId" having count(*) > 1`,
  'a contact has a key once': `
    select "contactId" from "contactAttributes" group by "contactId", "attributeKeyId" having count(*) > 1`,
  'an attribute is of a key of its contact’s workspace': `
    select a."id" from "contactAttributes" a join "contacts" c on c."id" = a."contactId"
    join "contactAttributeKeys" k on k."id" = a."attributeKeyId" where k."workspaceId" <> c."workspaceId"`,
  'a workspace has each default key once': `
    select w."id" from "workspaces" w join "contactAttributeKeys" k on k."workspaceId" = w."id"
    where k."type" = 'default' group by w."id" having count(*) <> 5`,
  'an organization has an owner': `
    select "id" from "organizations" o where o."deletingAt" is null and not exists
    (select 1 from "memberships" m where m."organizationId" = o."id" and m."role" = 'owner')`,
  'one organization is the operator’s': `
    select count(*) from "organizations" where "isOperators" = 1 having count(*) <> 1`,
  'a response is in the workspace of its survey': `
    select r."id" from "responses" r join "surveys" s on s."id" = r."surveyId"
    where r."workspaceId" <> s."workspaceId"`,
  'a response and its display are of one survey': `
    select r."id" from "responses" r join "displays" d on d."id" = r."displayId"
    where d."surveyId" <> r."surveyId"`,
  'an event and a webhook have one delivery': `
    select "eventId" from "deliveries" group by "eventId", "webhookId" having count(*) > 1`,
};

/** @returns the names of failed checks, each with its first finding; empty if there are none */
export async function brokenInvariants(db: Database): Promise<readonly string[]> {
  const broken: string[] = [];
  for (const [name, query] of Object.entries(checks)) {
    const { rows } = await sql.raw(query).execute(db);
    if (rows.length > 0) broken.push(`${name}: ${rows.length} times not, such as ${JSON.stringify(rows[0])}`);
  }
  return broken;
}
