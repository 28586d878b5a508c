/**
 * Contacts, people and contact attributes on v1; on v2 only the creation of a contact. Older clients know contacts that
 * have a user id as people, and get their attributes with them.
 *
 * Callers: API keys, and on v1 sessions. GET needs the right to read the workspace, POST to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { MapOf, Nullable, rowFields, scopeFields } from '#api/values/schemas.ts';
import { deleteContact } from './deletion.ts';
import { createContact } from './new-contact.ts';
import { contacts, findPerson, listContactAttributes, listPeople } from './store.ts';

/** Maximum number of people in a page. It is smaller than for contacts, because each has up to 150 attributes. */
const PEOPLE_MAX = 1_000;
/** With the longest attributes they take 8 MiB. */
const PEOPLE_AT_ONCE = 25;
/** Without long values an attribute is some 250 bytes of JSON, so a page has about one megabyte. */
const ATTRIBUTES_MAX = 5_000;

const ContactReply = Type.Object({ ...rowFields, userId: Nullable(Type.String()) });
export const PersonReply = Type.Object({
  ...rowFields,
  userId: Type.String(),
  attributes: MapOf(Type.String()),
});
const ContactAttributeReply = Type.Object({
  id: Type.String(),
  attributeKeyId: Type.String(),
  contactId: Type.String(),
  value: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});
const NewContact = Type.Object({
  ...scopeFields,
  attributes: MapOf(Type.Union([Type.String(), Type.Number(), Type.Boolean()])),
});
const NewContactReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  workspaceId: Type.String(),
  environmentId: Type.String(),
  attributes: MapOf(Type.String()),
});

export const contactRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/contacts',
    param: 'contactId',
    type: 'Contact',
    rows: contacts,
    reply: ContactReply,
    toReplies: (found) => found,
  });
  resource.list();
  resource.read();
  resource.remove(({ id }) => deleteContact(db, id), 'Contact deleted successfully');

  const people = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/people',
    param: 'personId',
    type: 'Person',
    rows: { find: findPerson, list: listPeople },
    reply: PersonReply,
    toReplies: (found) => found,
  });
  people.list(PEOPLE_MAX, PEOPLE_AT_ONCE);
  people.read();
  people.remove(({ id }) => deleteContact(db, id), 'Person deleted successfully');

  app.get(
    '/api/v1/management/contact-attributes',
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(ContactAttributeReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = readableWorkspaces(request);
      return {
        data: await readPage({ request, reply }, request.query, { limitMax: ATTRIBUTES_MAX }, (page) =>
          listContactAttributes(db, workspaceIds, page),
        ),
      };
    },
  );
};

export const v2ContactRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v2/management/contacts',
    {
      schema: { body: NewContact, response: { 201: Type.Object({ data: NewContactReply }) } },
      preHandler: loadBodyWorkspace(context, { version: 'v2' }),
    },
    async (request, reply) => {
      const { id: workspaceId } = workspaceOf(request);
      const { contact, attributes } = await createContact(context, workspaceId, request.body.attributes);
      const { id, createdAt } = contact;
      return reply
        .code(201)
        .send({ data: { id, createdAt, workspaceId, environmentId: workspaceId, attributes } });
    },
  );
};
