/**
 * The page behind the link of an invite, and the route of its form, which programs may call too.
 *
 * Callers: anybody who has the link. If its address has an account, a session of that account.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { setSessionCookie } from '#api/auth/cookies.ts';
import { startSession } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import { ApiError, badRequest } from '#api/errors.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { htmlPage } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { noteAccountEvent } from '#api/resources/accounts/account-event.ts';
import { fieldErrors } from '#api/resources/accounts/account-forms.ts';
import { loggedIn } from '#api/resources/accounts/admission.ts';
import { acceptForms, callbackUrl, fieldOf, formFields, wantsJson } from '#api/resources/accounts/form.ts';
import { ACCOUNT_PATH } from '#api/resources/accounts/login-page.ts';
import { sessionReplies } from '#api/resources/accounts/login-replies.ts';
import { isFormOurs, protect } from '#api/resources/accounts/protection.ts';
import { findUserByEmail, noteLogin } from '#api/resources/accounts/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { acceptInvite, isAccount } from './accept.ts';
import { type InvitePage, inviteParts, newAccountFields } from './page.ts';
import { findOpenInvite } from './store.ts';

const TOKEN_LENGTH_MAX = 128;
const NAME_LENGTH_MAX = 250;

const page = {
  schema: {
    response: { 200: htmlPage('A page.'), 400: htmlPage('A page: the link has ended, or was used.') },
  },
};
/** 401 if the address has an account, because its owner must be logged in. */
const acceptance = {
  schema: { response: sessionReplies },
  config: {
    limit: 'auth.signup',
    refuses: ['bad_request', 'not_authenticated', 'forbidden', 'conflict'],
    reads: formFields('token', 'name', 'password'),
  },
} as const;

export const inviteAcceptRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, config, signer } = context;
  const { publicUrl } = config;
  const { basePath } = app;
  acceptForms(app);

  app.get('/invite', page, async (request, reply) => {
    const token = fieldOf(request.query, 'token').slice(0, TOKEN_LENGTH_MAX);
    return showPage(request, reply, { status: 200, token, problem: null, name: '' });
  });

  app.post('/api/auth/accept-invite', acceptance, async (request, reply) => {
    try {
      const token = await accept(request);
      setSessionCookie(reply, token, { maxAge: config.sessionMaxAgeSeconds, publicUrl });
      const url = callbackUrl(fieldOf(request.body, 'callbackUrl'), publicUrl);
      if (wantsJson(request.body)) return { url };
      // Stays on the host of the page, which has the cookie.
      return reply.redirect(isFromPage(request) ? `${basePath}${ACCOUNT_PATH}` : url);
    } catch (error) {
      if (!(error instanceof ApiError) || !isFromPage(request)) throw error;
      return showPage(request, reply, {
        status: error.statusCode,
        token: fieldOf(request.body, 'token').slice(0, TOKEN_LENGTH_MAX),
        problem: problemOf(error),
        name: fieldOf(request.body, 'name').slice(0, NAME_LENGTH_MAX),
      });
    }
  });

  /** @returns the token of a new session */
  async function accept(request: FastifyRequest): Promise<string> {
    const { body } = request;
    if (!isFormOurs(request, signer)) {
      throw badRequest('The form is too old or came from elsewhere; send it again', {
        csrfToken: 'must be the one of GET /api/auth/csrf',
      });
    }
    const session = await loggedIn(context, request);
    const acceptance = {
      token: fieldOf(body, 'token'),
      sessionUserId: session?.user.id ?? null,
      name: fieldOf(body, 'name'),
      password: fieldOf(body, 'password'),
    };
    const { accepted, token } = await acceptInvite(context, acceptance, async (trx, accepted) => {
      await noteLogin(trx, accepted.userId, toTimestamp(clock()));
      const options = { clock, random, maxAgeSeconds: config.sessionMaxAgeSeconds };
      return { accepted, token: await startSession(trx, accepted.userId, options) };
    });
    const { userId, organizationId, isNew } = accepted;
    const changes = { by: 'invite' };
    if (isNew)
      await noteAccountEvent(context, request, { action: 'created', userId, changes, organizationId });
    await noteAccountEvent(context, request, {
      action: 'created',
      userId,
      changes,
      organizationId,
      target: { type: 'member', id: userId },
    });
    return token;
  }

  async function showPage(
    request: FastifyRequest,
    reply: FastifyReply,
    shown: Pick<InvitePage, 'token' | 'problem' | 'name'> & { readonly status: number },
  ) {
    const { status, ...rest } = shown;
    const invite = await findOpenInvite(db, shown.token, clock());
    if (invite === null) {
      return sendPage(reply, 400, 'This invitation does not work', [
        '<p>It has ended, was used or was revoked. Ask the person who invited you for a new one.</p>',
      ]);
    }
    const known = await findUserByEmail(db, invite.email);
    const user = (await loggedIn(context, request))?.user ?? null;
    const isMine = isAccount(known) && known?.id === user?.id;
    const parts = inviteParts({
      ...rest,
      invite,
      protection: protect(context, request, reply),
      basePath,
      account: isMine ? 'mine' : isAccount(known) ? 'known' : 'new',
      otherEmail: user === null || isMine ? null : user.email,
    });
    return sendPage(reply, status, 'Invitation', parts);
  }
};

function problemOf(error: ApiError): NonNullable<InvitePage['problem']> {
  const fields = fieldErrors({ fields: newAccountFields }, error);
  return Object.keys(fields).length > 0
    ? { text: 'Please check what is marked below.', fields }
    : { text: error.message, fields: {} };
}

function isFromPage(request: FastifyRequest): boolean {
  return !wantsJson(request.body) && prefersHtml(request);
}
