/** Checks who may see a team, and who may change it. */
import type { FastifyRequest } from 'fastify';
import { sessionOf } from '#api/auth/plugin.ts';
import { runsOrganization } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { existing, unauthorized } from '#api/errors.ts';
import { actorIn, actorNow, managerNow } from '#api/resources/organizations/access.ts';
import { findTeam, type Team, teamRoleOf } from './store.ts';

interface TeamPath {
  readonly organizationId: string;
  readonly teamId: string;
}

/** Finds a team for owners, managers, and members of the team. @throws ApiError not_found, unauthorized */
export async function visibleTeam(db: Database, request: FastifyRequest, path: TeamPath): Promise<Team> {
  const { userId, role } = actorIn(request, path.organizationId);
  const team = await teamIn(db, path);
  if (!runsOrganization(role) && (await teamRoleOf(db, team.id, userId)) === null) throw unauthorized();
  return team;
}

/** Finds a team for owners and managers, in the transaction of the change. @throws ApiError not_found, unauthorized */
export async function managedTeam(trx: Database, request: FastifyRequest, path: TeamPath): Promise<Team> {
  await managerNow(trx, request, path.organizationId);
  return teamIn(trx, path);
}

/**
 * Finds a team for owners, managers and its own admins. Every member may leave it.
 *
 * @throws ApiError not_found, unauthorized
 */
export async function staffedTeam(
  trx: Database,
  request: FastifyRequest,
  path: TeamPath & { readonly leaves: string | null },
): Promise<Team> {
  const { userId } = sessionOf(request);
  const { role } = await actorNow(trx, request, path.organizationId);
  const team = await teamIn(trx, path);
  const isAllowed =
    runsOrganization(role) || path.leaves === userId || (await teamRoleOf(trx, team.id, userId)) === 'admin';
  if (!isAllowed) throw unauthorized();
  return team;
}

async function teamIn(db: Database, { organizationId, teamId }: TeamPath): Promise<Team> {
  return existing(await findTeam(db, organizationId, teamId), 'Team', teamId);
}
