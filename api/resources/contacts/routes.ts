/**
 * Contacts on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { Nullable, rowFields } from '#api/values/schemas.ts';
import { deleteContact } from './deletion.ts';
import { contacts } from './store.ts';

const ContactReply = Type.Object({
  ...rowFields,
  userId: Nullable(Type.String()),
});

export const contactRoutes: Routes = async (app, { context }) => {
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/contacts',
    param: 'contactId',
    type: 'Contact',
    rows: contacts,
    reply: ContactReply,
    toReplies: (found) => found,
  });

  resource.list();
  resource.read();
  resource.removeWithMessage('Contact deleted successfully', ({ id }) => deleteContact(context.db, id));
};
