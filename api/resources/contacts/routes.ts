/**
 * Contacts on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { Nullable } from '#api/schemas.ts';
import { deleteContact } from './deletion.ts';
import { findContactById, listContacts } from './store.ts';

/** A contact is some 200 bytes of JSON, so the largest reply has about one megabyte. */
const CONTACTS_MAX = 5_000;

const ContactReply = Type.Object({
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  userId: Nullable(Type.String()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const contactRoutes: Routes = async (app, { context }) => {
  const contacts = v1Resource(app, context, {
    url: '/api/v1/management/contacts',
    param: 'contactId',
    type: 'Contact',
    find: findContactById,
    reply: ContactReply,
    toReplies: (found) => found,
  });

  contacts.list(CONTACTS_MAX, listContacts);
  contacts.read();
  contacts.removeWithMessage('Contact deleted successfully', ({ id }) => deleteContact(context.db, id));
};
