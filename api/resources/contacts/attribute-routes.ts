/**
 * Contact attributes on v1.
 *
 * Callers: API keys and sessions with the right to read the workspace.
 */
import { Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { listContactAttributes } from './attribute-store.ts';

/** Without long values an attribute is some 250 bytes of JSON, so a page has about one megabyte. */
const ATTRIBUTES_MAX = 5_000;

const ContactAttributeReply = Type.Object({
  id: Type.String(),
  attributeKeyId: Type.String(),
  contactId: Type.String(),
  value: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const contactAttributeRoutes: Routes = async (app, { context: { db } }) => {
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
