/**
 * People on the management API: the older view on contacts that have a user id, with their attributes. Needs a key;
 * rights go by method.
 */
import type { Kysely } from 'kysely';
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { PersonReply } from './people-schema.ts';
import {
  attributesOf,
  type Contact,
  deleteContact,
  findContactById,
  listIdentifiedContacts,
} from './store.ts';

/** Smaller than a page of contacts: each person brings up to 150 attributes along. */
const PEOPLE_MAX = 1_000;

const Params = Type.Object({ personId: Type.String() });

/** A contact that says who it is. */
type Identified = Contact & { readonly userId: string };

export const peopleRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const people = workspaceRow({ db, type: 'Person', param: 'personId', find: findPerson });

  app.get(
    '/api/v1/management/people',
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(PersonReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const people = await readPage(
        { request, reply },
        request.query,
        { limitMax: PEOPLE_MAX },
        async (page) =>
          withAttributes(db, (await listIdentifiedContacts(db, workspaceIds, page)).filter(isIdentified)),
      );
      return { data: [...(await withEnvironmentIds(db, people))] };
    },
  );

  app.get(
    '/api/v1/management/people/:personId',
    {
      schema: { params: Params, response: { 200: Type.Object({ data: PersonReply }) } },
      onRequest: people.load,
    },
    async (request) => {
      const [person] = await withAttributes(db, [people.of(request)]);
      if (person === undefined) throw new Error('A person came back without itself');
      return { data: person };
    },
  );

  app.delete(
    '/api/v1/management/people/:personId',
    {
      schema: {
        params: Params,
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      onRequest: people.load,
    },
    async (request) => {
      await deleteContact(db, people.of(request).id);
      return { data: { success: 'Person deleted successfully' } };
    },
  );
};

/** A contact without a user id is nobody here. */
async function findPerson(db: Kysely<Database>, id: string): Promise<Identified | null> {
  const contact = await findContactById(db, id);
  return contact !== null && isIdentified(contact) ? contact : null;
}

function isIdentified(contact: Contact): contact is Identified {
  return contact.userId !== null;
}

/** One query for any number of people. */
async function withAttributes<P extends Contact>(db: Kysely<Database>, people: readonly P[]) {
  const attributes = await attributesOf(
    db,
    people.map(({ id }) => id),
  );
  return people.map((person) => ({ ...person, attributes: { ...attributes.get(person.id) } }));
}
