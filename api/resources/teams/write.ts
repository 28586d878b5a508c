/** Creates and renames teams. */
import type { Context } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { conflict, forbidden } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { countTeams, insertTeam, renameTeam, type Team } from './store.ts';

/** Maximum number of teams in an organization. */
export const TEAMS_MAX = 200;

/**
 * @param allow locks the organization, and throws if the caller may not do this
 * @throws ApiError forbidden at the maximum, conflict if the name is taken
 */
export function createTeam(
  { db, clock, random }: Pick<Context, 'db' | 'clock' | 'random'>,
  { organizationId, name }: Pick<Team, 'organizationId' | 'name'>,
  allow: (trx: Database) => Promise<unknown>,
): Promise<Team> {
  const now = toTimestamp(clock());
  const made: Team = { id: newId(random), organizationId, name, createdAt: now, updatedAt: now };
  return withFreeName(name, () =>
    db.transaction().execute(async (trx) => {
      await allow(trx);
      if ((await countTeams(trx, organizationId)) >= TEAMS_MAX) {
        throw forbidden(`An organization can have ${TEAMS_MAX} teams; delete one that nobody needs`);
      }
      await insertTeam(trx, made);
      return made;
    }),
  );
}

/**
 * @param find locks the organization and finds the team, and throws if the caller may not change it
 * @throws ApiError conflict if the name is taken
 */
export function changeTeamName<T>(
  { db, clock }: Pick<Context, 'db' | 'clock'>,
  name: string,
  find: (trx: Database) => Promise<Team>,
  finish: (trx: Database, team: Team) => Promise<T>,
): Promise<T> {
  return withFreeName(name, () =>
    db.transaction().execute(async (trx) => {
      const team = await find(trx);
      const updatedAt = toTimestamp(clock());
      await renameTeam(trx, team.id, name, updatedAt);
      return finish(trx, { ...team, name, updatedAt });
    }),
  );
}

function withFreeName<T>(name: string, work: () => Promise<T>): Promise<T> {
  const problem = `A team with the name ${name} already exists`;
  return unlessTaken(['teams.organizationId', 'teams.name'], conflict(problem, { name: problem }), work);
}
