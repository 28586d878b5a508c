/**
 * Invites people to an organization. The link goes by mail. Without a mail server, the reply shows it once, so that
 * the inviter can pass it on.
 *
 * Callers: sessions of owners, who may invite to every role, and of managers, who may invite members.
 */
import { Type } from 'typebox';
import { emailIn } from '#api/auth/password.ts';
import { forPeople } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import type { Database } from '#api/db/schema.ts';
import { conflict, existing, forbidden, invalidFields, RetryLater, unauthorized } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import type { Mail } from '#api/mail/mail.ts';
import { mayMail } from '#api/resources/accounts/mails.ts';
import { findUser, findUserByEmail } from '#api/resources/accounts/store.ts';
import { managerNow, mayGive, requireManager } from '#api/resources/organizations/access.ts';
import { findOrganization, roleOf } from '#api/resources/organizations/store.ts';
import { findTeam } from '#api/resources/teams/store.ts';
import { Id, Nullable, OneOf } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import {
  countInvites,
  findInvite,
  findInviteFor,
  forgetOldInvites,
  type Invite,
  insertInvite,
  listInvites,
  type OpenInvite,
  renewInvite,
  revokeInvite,
} from './store.ts';

/**
 * Maximum number in an organization. Revoked invites count for a day, so that they cannot be used to send many mails.
 */
const INVITES_MAX = 200;
const TEAMS_MAX = 50;
const RETRY_SECONDS = 3_600;

const NewInvite = Type.Object({
  email: Type.String(),
  /** Role of the new member. Default: member. */
  role: Type.Optional(OneOf(['owner', 'manager', 'member'] as const)),
  /** The person joins these teams as a contributor. */
  teamIds: Type.Optional(Type.Array(Id, { maxItems: TEAMS_MAX })),
});
const shape = {
  id: Type.String(),
  organizationId: Type.String(),
  email: Type.String(),
  role: Type.String(),
  teamIds: Type.Array(Type.String()),
  invitedBy: Type.String(),
  createdAt: Type.String(),
  expiresAt: Type.String(),
};
const InviteReply = Type.Object(shape);
/** The invite with its link; the link is null if it was mailed. */
const SentInviteReply = Type.Object({ ...shape, link: Nullable(Type.String()) });

const OrganizationPath = Type.Object({ organizationId: Type.String() });
const InvitePath = Type.Object({ organizationId: Type.String(), inviteId: Type.String() });

export const inviteRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, mailer } = context;
  const { publicUrl } = context.config;
  const url = '/api/v1/organizations/:organizationId/invites';
  const oneUrl = `${url}/:inviteId`;

  app.get(
    url,
    {
      schema: {
        params: OrganizationPath,
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(InviteReply) }) },
      },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request, reply) => {
      const { organizationId } = request.params;
      const found = await readPage({ request, reply }, request.query, { limitMax: INVITES_MAX }, (page) =>
        listInvites(db, organizationId, page),
      );
      return { data: found };
    },
  );

  app.post(
    url,
    {
      schema: {
        params: OrganizationPath,
        body: NewInvite,
        response: { 200: Type.Object({ data: SentInviteReply }) },
      },
      config: { ...forPeople, refuses: ['forbidden', 'conflict', 'too_many_requests'] },
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId } = request.params;
      const { role = 'member' } = request.body;
      const email = emailIn(request.body.email);
      const teamIds = [...new Set(request.body.teamIds)];
      return db.transaction().execute(async (trx) => {
        const actor = await managerNow(trx, request, organizationId);
        if (!mayGive(actor, role)) throw unauthorized();
        const now = clock();
        await forgetOldInvites(trx, organizationId, now);
        await refuseKnown(trx, organizationId, email);
        if ((await countInvites(trx, organizationId)) >= INVITES_MAX) {
          throw forbidden(
            `An organization can have ${INVITES_MAX} open invites; revoke some, which counts from the next day on`,
          );
        }
        for (const [i, teamId] of teamIds.entries()) {
          if ((await findTeam(trx, organizationId, teamId)) === null) {
            throw invalidFields({ [`teamIds.${i}`]: 'is no team of the organization' });
          }
        }
        const invitedBy = actor.userId;
        return send(
          trx,
          await insertInvite(trx, { organizationId, email, role, teamIds, invitedBy }, now, random),
        );
      });
    },
  );

  app.post(
    `${oneUrl}/resend`,
    {
      schema: { params: InvitePath, response: { 200: Type.Object({ data: SentInviteReply }) } },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId, inviteId } = request.params;
      return db.transaction().execute(async (trx) => {
        const actor = await managerNow(trx, request, organizationId);
        const invite = await inviteIn(trx, organizationId, inviteId);
        if (!mayGive(actor, invite.role)) throw unauthorized();
        return send(trx, await renewInvite(trx, invite, clock(), random));
      });
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: InvitePath, response: { 200: Type.Object({ data: InviteReply }) } },
      config: forPeople,
      onRequest: requireManager,
    },
    async (request) => {
      const { organizationId, inviteId } = request.params;
      return db.transaction().execute(async (trx) => {
        await managerNow(trx, request, organizationId);
        const invite = await inviteIn(trx, organizationId, inviteId);
        await revokeInvite(trx, invite.id, toTimestamp(clock()));
        return { data: invite };
      });
    },
  );

  /** @throws ApiError conflict for members, and for people with a valid invite */
  async function refuseKnown(trx: Database, organizationId: string, email: string): Promise<void> {
    const user = await findUserByEmail(trx, email);
    if (user !== null && (await roleOf(trx, organizationId, user.id)) !== null) {
      throw conflict('This address belongs to a member of the organization');
    }
    const open = await findInviteFor(trx, organizationId, email, clock());
    if (open !== null) {
      throw conflict('This address is invited already; send that invite again, or revoke it', {
        inviteId: open.id,
      });
    }
  }

  /** Mails the link or, without a mail server, returns it. @throws RetryLater if the mailbox recently got too many */
  async function send(trx: Database, { invite, token }: { readonly invite: Invite; readonly token: string }) {
    const link = inviteLink(publicUrl, token);
    if (!mailer.hasServer) return { data: { ...invite, link } };
    if (!(await mayMail(context, trx, { to: invite.email, kind: 'invite' }))) {
      throw new RetryLater(
        'too_many_requests',
        'This address got several invitations within an hour; try again in an hour',
        RETRY_SECONDS,
      );
    }
    const organization = await findOrganization(trx, invite.organizationId);
    const inviter = await findUser(trx, invite.invitedBy);
    const names = { organizationName: organization?.name ?? '', inviterName: inviter?.name ?? '' };
    await mailer.accept(trx, inviteMail({ ...invite, ...names }, link));
    return { data: { ...invite, link: null } };
  }
};

async function inviteIn(trx: Database, organizationId: string, id: string): Promise<Invite> {
  return existing(await findInvite(trx, organizationId, id), 'Invite', id);
}

function inviteLink(publicUrl: string, token: string): string {
  return `${publicUrl}/invite?token=${token}`;
}

function inviteMail(
  {
    email,
    organizationName,
    inviterName,
    role,
  }: Pick<OpenInvite, 'email' | 'organizationName' | 'inviterName' | 'role'>,
  link: string,
): Mail {
  return {
    kind: 'invite',
    to: email,
    subject: `Invitation to ${organizationName}`,
    body: `${inviterName} invites you to ${organizationName}, as ${role}. Open this link within seven days to accept:

${link}

If you do not know what this is about, ignore this mail: nothing happens without the link.
`,
  };
}
