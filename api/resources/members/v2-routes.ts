/**
 * The users of an organization, on v2. There is no POST: people join by an invite, which they accept themselves.
 *
 * Callers: API keys of the organization. GET needs the right to read the organization, PATCH to write it. A key has at
 * most the rights of its creator: managers change members, owners change everybody, and a deactivated person changes
 * nobody.
 */
import { type Static, Type } from 'typebox';
import { normalizeEmail } from '#api/auth/password.ts';
import type { ApiKeyPrincipal } from '#api/auth/principal.ts';
import { endSessionsOf } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { badRequest, conflict, existing, forbidden, invalidFields } from '#api/errors.ts';
import { ListMeta, listQuery, pageFrom, readV2Page } from '#api/http/v2-pagination.ts';
import { findUserToChange, updateUser } from '#api/resources/accounts/store.ts';
import { creatorOfKey } from '#api/resources/api-keys/store.ts';
import { mayGive } from '#api/resources/organizations/access.ts';
import {
  aboutOrganization,
  keyIn,
  lockOrganization,
  requireOrganizationAccess,
} from '#api/resources/organizations/key-access.ts';
import { plainName } from '#api/resources/organizations/name.ts';
import { listTeams, removeTeamMember, setTeamMember } from '#api/resources/teams/store.ts';
import { TEAMS_MAX } from '#api/resources/teams/write.ts';
import { Id, Nullable, OneOf } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { changeRole, deleteInvitesBy, findMember, findUsersOf, hasOtherOwner, type Member } from './store.ts';

const url = '/api/v2/organizations/:organizationId/users';
const onRequest = requireOrganizationAccess;

const RoleName = OneOf(['owner', 'manager', 'member'] as const);
const OrganizationPath = Type.Object({ organizationId: Id });
const User = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  lastLoginAt: Nullable(Type.String()),
  isActive: Type.Boolean(),
  name: Type.String(),
  email: Type.String(),
  role: RoleName,
  teams: Type.Array(Type.String({ description: 'The name of a team.' })),
});
const Change = Type.Object({
  email: Type.String({ description: 'Names the user. It cannot be changed.' }),
  name: Type.Optional(Type.String()),
  role: Type.Optional(RoleName),
  isActive: Type.Optional(Type.Boolean()),
  teams: Type.Optional(
    Type.Array(Type.String(), { maxItems: TEAMS_MAX, description: 'The names of all teams of the user.' }),
  ),
});

export const v2UserRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;

  app.get(
    url,
    {
      schema: {
        params: OrganizationPath,
        querystring: Type.Object({
          ...listQuery,
          id: Type.Optional(Id),
          email: Type.Optional(Type.String()),
        }),
        response: { 200: Type.Object({ data: Type.Array(User), meta: ListMeta }) },
      },
      config: aboutOrganization,
      onRequest,
    },
    async (request) => {
      const { organizationId } = request.params;
      const { id, email } = request.query;
      let matching = db
        .selectFrom('users')
        .where('id', 'in', (from) =>
          from.selectFrom('memberships').select('userId').where('organizationId', '=', organizationId),
        );
      if (id !== undefined) matching = matching.where('id', '=', id);
      if (email !== undefined) matching = matching.where('email', '=', email.trim().toLowerCase());
      return readV2Page(matching, pageFrom(request.query), (ids) => findUsersOf(db, organizationId, ids));
    },
  );

  app.patch(
    url,
    {
      schema: { params: OrganizationPath, body: Change, response: { 200: Type.Object({ data: User }) } },
      config: { ...aboutOrganization, refuses: ['bad_request', 'forbidden', 'not_found', 'conflict'] },
      onRequest,
    },
    async (request) => {
      const key = keyIn(request);
      const { body } = request;
      const name = body.name === undefined ? undefined : plainName(body.name);
      const email = normalizeEmail(body.email);
      if (email === null) throw invalidFields({ email: 'must be an e-mail address' });
      return db.transaction().execute(async (trx) => {
        const { organizationId } = key;
        await lockOrganization(trx, organizationId);
        const user = await findUserToChange(trx, email);
        const member = existing(
          user === null ? null : await findMember(trx, organizationId, user.id),
          'Member',
          null,
        );
        await refuseUnlessGiven(trx, key, [member.role, body.role ?? member.role]);
        await keepAnOwner(trx, organizationId, member, body);
        if (name !== undefined || body.isActive !== undefined) {
          await refuseShared(trx, organizationId, member.id);
          const isActive = body.isActive === undefined ? {} : ({ isActive: body.isActive ? 1 : 0 } as const);
          await updateUser(trx, member.id, { ...(name === undefined ? {} : { name }), ...isActive }, now());
          if (body.isActive === false) {
            await endSessionsOf(trx, member.id);
            await deleteInvitesBy(trx, organizationId, member.id);
          }
        }
        if (body.role !== undefined) await changeRole(trx, organizationId, member.id, body.role);
        if (body.teams !== undefined) await setTeams(trx, organizationId, member, body.teams);
        const [found] = await findUsersOf(trx, organizationId, [member.id]);
        const changed = existing(found, 'Member', member.id);
        return { data: changed };
      });
    },
  );

  async function setTeams(
    trx: Database,
    organizationId: string,
    member: Member,
    names: readonly string[],
  ): Promise<void> {
    const teams = await listTeams(trx, organizationId, null, { limit: TEAMS_MAX, skip: 0 });
    const wrong = names.find((name) => !teams.some((team) => team.name === name));
    if (wrong !== undefined) {
      throw badRequest('A team does not exist', {
        teams: `There is no team with the name ${wrong.slice(0, 100)}`,
      });
    }
    const before = new Set(member.teams.map(({ id }) => id));
    for (const { id, name } of teams) {
      const isWanted = names.includes(name);
      if (isWanted && !before.has(id)) {
        await setTeamMember(trx, { teamId: id, userId: member.id, role: 'contributor' }, now());
      }
      if (!isWanted && before.has(id)) await removeTeamMember(trx, id, member.id);
    }
  }

  function now(): string {
    return toTimestamp(clock());
  }
};

/** @throws ApiError forbidden if the creator of the key may not give, or remove, one of the roles */
async function refuseUnlessGiven(
  trx: Database,
  { apiKeyId, organizationId }: ApiKeyPrincipal,
  roles: readonly Member['role'][],
): Promise<void> {
  const userId = (await creatorOfKey(trx, apiKeyId)) ?? '';
  const maker = await findMember(trx, organizationId, userId);
  const isAllowed =
    maker?.isActive === true && roles.every((one) => mayGive({ userId, role: maker.role }, one));
  if (isAllowed) return;
  const problem = 'The person who made this key may not change this user, or not give this role';
  throw forbidden(problem, { role: problem });
}

/** @throws ApiError conflict if the last owner would lose the role or be deactivated */
async function keepAnOwner(
  trx: Database,
  organizationId: string,
  member: Member,
  { role = member.role, isActive = member.isActive }: Static<typeof Change>,
): Promise<void> {
  const stays = role === 'owner' && isActive;
  if (member.role !== 'owner' || stays || (await hasOtherOwner(trx, organizationId, member.id))) return;
  const problem = 'An organization keeps its last owner; make somebody else an owner first';
  throw conflict(problem, { role: problem });
}

/** Refuses changes of an account that is also in other organizations, because an account belongs to one person. */
async function refuseShared(trx: Database, organizationId: string, userId: string): Promise<void> {
  const other = await trx
    .selectFrom('memberships')
    .select('organizationId')
    .where('userId', '=', userId)
    .where('organizationId', '!=', organizationId)
    .executeTakeFirst();
  if (other === undefined) return;
  const problem = 'The user belongs to other organizations too, so name and isActive cannot be changed here';
  throw forbidden(problem, { email: problem });
}
