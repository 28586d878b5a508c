/**
 * The members of an organization.
 *
 * Callers: sessions of its members, who may list them and leave. Managers may remove members; owners may give and
 * remove every role. The last owner must stay.
 */
import { Type } from 'typebox';
import { forPeople } from '#api/auth/plugin.ts';
import { runsOrganization } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { conflict, existing, unauthorized } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import {
  actorNow,
  managerNow,
  mayGive,
  requireManager,
  requireMember,
} from '#api/resources/organizations/access.ts';
import { OneOf } from '#api/schemas.ts';
import {
  changeRole,
  findMember,
  hasOtherOwner,
  keysMadeBy,
  listMembers,
  type Member,
  removeMember,
} from './store.ts';

const LIST_MAX = 1_000;

const Params = Type.Object({ organizationId: Type.String(), userId: Type.String() });
const MemberReply = Type.Object({
  id: Type.String(),
  name: Type.String(),
  email: Type.String(),
  role: Type.String(),
  isActive: Type.Boolean(),
  /** The time when the person joined. */
  createdAt: Type.String(),
  teams: Type.Array(Type.Object({ id: Type.String(), name: Type.String(), role: Type.String() })),
});

export const memberRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const url = '/api/v1/organizations/:organizationId/members';
  const oneUrl = `${url}/:userId`;

  app.get(
    url,
    {
      schema: {
        params: Type.Object({ organizationId: Type.String() }),
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(MemberReply) }) },
      },
      config: forPeople,
      onRequest: requireMember,
    },
    async (request, reply) => {
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listMembers(db, request.params.organizationId, page),
      );
      return { data: found };
    },
  );

  app.put(
    oneUrl,
    {
      schema: {
        params: Params,
        body: Type.Object({ role: OneOf(['owner', 'manager', 'member'] as const) }),
        response: { 200: Type.Object({ data: MemberReply }) },
      },
      config: { ...forPeople, refuses: ['conflict'] },
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId, userId } = request.params;
      const { role } = request.body;
      return db.transaction().execute(async (trx) => {
        const actor = await managerNow(trx, request, organizationId);
        const member = await memberOf(trx, organizationId, userId);
        if (!mayGive(actor, member.role) || !mayGive(actor, role)) throw unauthorized();
        if (role !== 'owner') await keepAnOwner(trx, organizationId, member);
        await changeRole(trx, organizationId, userId, role);
        return { data: { ...member, role } };
      });
    },
  );

  app.delete(
    oneUrl,
    {
      schema: {
        params: Params,
        response: {
          200: Type.Object({
            data: MemberReply,
            /** Ids of keys that the person created. They work until they are deleted. */
            meta: Type.Object({ apiKeyIds: Type.Array(Type.String()) }),
          }),
        },
      },
      config: { ...forPeople, refuses: ['conflict'] },
      onRequest: requireMember,
    },
    async (request) => {
      const { organizationId, userId } = request.params;
      return db.transaction().execute(async (trx) => {
        const actor = await actorNow(trx, request, organizationId);
        const isSelf = actor.userId === userId;
        if (!isSelf && !runsOrganization(actor.role)) throw unauthorized();
        const member = await memberOf(trx, organizationId, userId);
        if (!isSelf && !mayGive(actor, member.role)) throw unauthorized();
        await keepAnOwner(trx, organizationId, member);
        const apiKeyIds = await keysMadeBy(trx, organizationId, userId);
        await removeMember(trx, organizationId, userId);
        return { data: member, meta: { apiKeyIds } };
      });
    },
  );
};

async function memberOf(trx: Database, organizationId: string, userId: string): Promise<Member> {
  return existing(await findMember(trx, organizationId, userId), 'Member', userId);
}

/** @throws ApiError conflict if the member is the last owner, because nobody could give that role again */
async function keepAnOwner(trx: Database, organizationId: string, member: Member): Promise<void> {
  if (member.role !== 'owner' || (await hasOtherOwner(trx, organizationId, member.id))) return;
  throw conflict('An organization keeps its last owner; make somebody else an owner first');
}
