/**
 * People on v1: older clients know contacts that have a user id by this name, and get their attributes with them.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import type { ListPage } from '#api/http/pagination.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { MapOf, rowFields } from '#api/values/schemas.ts';
import { deleteContact } from './deletion.ts';
import { attributesOf, type Contact, contacts, isIdentified } from './store.ts';

/**
 * Maximum number of people in a page. It is smaller than for contacts, because each person has up to 150 attributes.
 */
const PEOPLE_MAX = 1_000;
/** With the longest attributes they take 8 MiB. */
const PEOPLE_AT_ONCE = 25;

export const PersonReply = Type.Object({
  ...rowFields,
  userId: Type.String(),
  attributes: MapOf(Type.String()),
});

export const peopleRoutes: Routes = async (app, { context }) => {
  const people = v1Resource(app, context, {
    url: '/api/v1/management/people',
    param: 'personId',
    type: 'Person',
    rows: { find: findPerson, list: listPeople },
    reply: PersonReply,
    toReplies: (found) => found,
  });

  people.list(PEOPLE_MAX, PEOPLE_AT_ONCE);
  people.read();
  people.removeWithMessage('Person deleted successfully', ({ id }) => deleteContact(context.db, id));
};

async function findPerson(db: Database, id: string) {
  const contact = await contacts.find(db, id);
  const [person = null] = contact === null ? [] : await toPeople(db, [contact]);
  return person;
}

/** Lists people with their attributes, which count for the size of a page. */
async function listPeople(db: Database, workspaceIds: readonly string[], page: ListPage) {
  return toPeople(db, await contacts.list(db, workspaceIds, page, isIdentified));
}

/** Leaves out contacts without a user id. Makes one query for any number of contacts. */
async function toPeople(db: Database, found: readonly Contact[]) {
  const identified = found.filter(hasUserId);
  const attributes = await attributesOf(
    db,
    identified.map(({ id }) => id),
  );
  return identified.map((contact) => ({ ...contact, attributes: { ...attributes.get(contact.id) } }));
}

function hasUserId(contact: Contact): contact is Contact & { readonly userId: string } {
  return contact.userId !== null;
}
