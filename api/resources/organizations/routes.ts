/**
 * The organizations of a person, and their names.
 *
 * Callers: sessions. Owners and managers may rename an organization.
 */
import { Type } from 'typebox';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { existing } from '#api/errors.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { managerNow, requireManager } from './access.ts';
import { plainName } from './name.ts';
import { findOrganization, listOrganizations, renameOrganization } from './store.ts';

const OrganizationReply = Type.Object({
  id: Type.String(),
  name: Type.String(),
  /** The caller's role: `owner`, `manager` or `member`. */
  role: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
});

export const organizationRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;

  app.get(
    '/api/v1/organizations',
    {
      schema: { response: { 200: Type.Object({ data: Type.Array(OrganizationReply) }) } },
      config: forPeople,
    },
    async (request) => ({ data: await listOrganizations(db, sessionOf(request).userId) }),
  );

  app.put(
    '/api/v1/organizations/:organizationId',
    {
      schema: {
        params: Type.Object({ organizationId: Type.String() }),
        body: Type.Object({ name: Type.String() }),
        response: { 200: Type.Object({ data: OrganizationReply }) },
      },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId } = request.params;
      const name = plainName(request.body.name);
      return db.transaction().execute(async (trx) => {
        const { role } = await managerNow(trx, request, organizationId);
        await renameOrganization(trx, organizationId, name, toTimestamp(clock()));
        const renamed = existing(await findOrganization(trx, organizationId), 'Organization', organizationId);
        return { data: { ...renamed, role } };
      });
    },
  );
};
