/** Contacts on the management API. Needs a key; rights go by method. */
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { Nullable } from '#api/schemas.ts';
import { deleteContact, findContactById, listContacts } from './store.ts';

/** A contact is some 200 bytes of JSON, so the largest reply has about one megabyte. */
const CONTACTS_MAX = 5_000;

const Params = Type.Object({ contactId: Type.String() });
const ContactReply = Type.Object({
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  userId: Nullable(Type.String()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const contactRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const contacts = workspaceRow({ db, type: 'Contact', param: 'contactId', find: findContactById });

  app.get(
    '/api/v1/management/contacts',
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(ContactReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: CONTACTS_MAX }, (page) =>
        listContacts(db, workspaceIds, page),
      );
      return { data: [...(await withEnvironmentIds(db, found))] };
    },
  );

  app.get(
    '/api/v1/management/contacts/:contactId',
    {
      schema: { params: Params, response: { 200: Type.Object({ data: ContactReply }) } },
      onRequest: contacts.load,
    },
    async (request) => ({ data: contacts.of(request) }),
  );

  app.delete(
    '/api/v1/management/contacts/:contactId',
    {
      schema: {
        params: Params,
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      onRequest: contacts.load,
    },
    async (request) => {
      await deleteContact(db, contacts.of(request).id);
      return { data: { success: 'Contact deleted successfully' } };
    },
  );
};
