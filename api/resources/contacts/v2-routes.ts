/**
 * Contacts on v2: creates one contact.
 *
 * Callers: API keys with the right to write to the workspace.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { v2BodyWorkspace } from '#api/resources/workspaces/scope.ts';
import { MapOf, scopeFields } from '#api/values/schemas.ts';
import { createContact } from './new-contact.ts';

const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);

const NewContact = Type.Object({ ...scopeFields, attributes: MapOf(Value) });
const ContactReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  workspaceId: Type.String(),
  environmentId: Type.String(),
  attributes: MapOf(Type.String()),
});

export const v2ContactRoutes: Routes = async (app, { context }) => {
  app.post(
    '/api/v2/management/contacts',
    {
      schema: { body: NewContact, response: { 201: Type.Object({ data: ContactReply }) } },
    },
    async (request, reply) => {
      const { id: workspaceId } = await v2BodyWorkspace(context, request);
      const { contact, attributes } = await createContact(context, workspaceId, request.body.attributes);
      const { id, createdAt } = contact;
      return reply
        .code(201)
        .send({ data: { id, createdAt, workspaceId, environmentId: workspaceId, attributes } });
    },
  );
};
