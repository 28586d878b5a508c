/** Checks what a logged-in person may do in the organization of the path. */
import type { FastifyRequest } from 'fastify';
import { sessionOf } from '#api/auth/plugin.ts';
import { type Role, runsOrganization } from '#api/auth/principal.ts';
import type { Database } from '#api/db/schema.ts';
import { existing, unauthorized } from '#api/errors.ts';
import { refusing } from '#api/http/refuses.ts';
import { isRecord } from '#api/schemas.ts';
import { lockPeople } from './store.ts';

/** The caller and their role at the beginning of the request. */
interface Actor {
  readonly userId: string;
  readonly role: Role;
}

const ofStrangers = ['not_found', 'unauthorized'] as const;

/** @throws ApiError not_found for people of other organizations, who do not learn which organizations exist */
export function actorIn(request: FastifyRequest, organizationId: string): Actor {
  const { userId, roles } = sessionOf(request);
  const role = existing(roles.get(organizationId), 'Organization', organizationId);
  return { userId, role };
}

/** @throws ApiError not_found for people of other organizations, unauthorized for members */
function managerIn(request: FastifyRequest, organizationId: string): Actor {
  return asManager(actorIn(request, organizationId));
}

/** A hook that runs before the body is read. @throws as `actorIn` */
export const requireMember = refusing(
  async (request: FastifyRequest): Promise<void> => void actorIn(request, organizationIn(request)),
  ...ofStrangers,
);

/** A hook that runs before the body is read. @throws as `managerIn` */
export const requireManager = refusing(
  async (request: FastifyRequest): Promise<void> => void managerIn(request, organizationIn(request)),
  ...ofStrangers,
);

/**
 * Checks again, in the transaction that changes the organization's people: a person who lost the role during the
 * request must not use it. It locks the organization, so such changes run one after the other.
 *
 * @throws ApiError not_found, unauthorized
 */
export async function actorNow(
  trx: Database,
  request: FastifyRequest,
  organizationId: string,
): Promise<Actor> {
  const { userId } = sessionOf(request);
  const role = existing(await lockPeople(trx, organizationId, userId), 'Organization', organizationId);
  return { userId, role };
}

/** Does the same as `actorNow`, and requires an owner or manager. @throws ApiError not_found, unauthorized */
export async function managerNow(
  trx: Database,
  request: FastifyRequest,
  organizationId: string,
): Promise<Actor> {
  return asManager(await actorNow(trx, request, organizationId));
}

/** Whether a person may give and take a role. Owners may give every role, managers only that of a member. */
export function mayGive(actor: Actor, role: Role): boolean {
  return actor.role === 'owner' || (actor.role === 'manager' && role === 'member');
}

function asManager(actor: Actor): Actor {
  if (!runsOrganization(actor.role)) throw unauthorized();
  return actor;
}

function organizationIn({ params }: FastifyRequest): string {
  return isRecord(params) ? String(params.organizationId) : '';
}
