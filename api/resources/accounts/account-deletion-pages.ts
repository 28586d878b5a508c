/**
 * The page on which a person deletes the account, together with the organizations that belong to that person alone.
 *
 * Callers: sessions. The form needs our CSRF token. The limit is that of the management API for sessions.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSessionCookies } from '#api/auth/cookies.ts';
import { normalizeEmail } from '#api/auth/password.ts';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { notAuthenticated } from '#api/errors.ts';
import { htmlPage, redirectTo } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { alert } from '#api/http/page-form.ts';
import { organizationsOf } from '#api/resources/organizations/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { noteAccountEvent } from './account-event.ts';
import { deleteAccount } from './deletion.ts';
import { ACCOUNT_DELETION_PATH, acceptForms, fieldOf, formFields } from './form.ts';
import { readAccount } from './home-view.ts';
import { backToAccount, sendQuestion } from './question.ts';
import { findUser } from './store.ts';
import { senderOf, visitorOf } from './visitor.ts';

const TITLE = 'Delete your account';
const toLogin = redirectTo('the login page');
const page = {
  schema: { response: { 200: htmlPage('A page that asks again.'), 302: toLogin } },
  config: { refuses: ['too_many_requests'] },
} as const;
const deletion = {
  schema: {
    response: {
      303: toLogin,
      400: htmlPage('The page again: another address was typed.'),
      409: htmlPage('A page: an organization has other people.'),
    },
  },
  config: {
    refuses: ['bad_request', 'not_authenticated', 'forbidden', 'too_many_requests'],
    reads: formFields('email'),
    refusedAs: { action: 'deleted', targetType: 'user', param: null },
  },
} as const;

export const accountDeletionPages: Routes = async (app, { context }) => {
  const { db, config } = context;
  const { basePath } = app;
  acceptForms(app);

  app.get(ACCOUNT_DELETION_PATH, page, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    return ask(request, reply, principal);
  });

  app.post(ACCOUNT_DELETION_PATH, deletion, async (request, reply) => {
    const principal = await senderOf(context, request);
    const { userId } = principal;
    if (normalizeEmail(fieldOf(request.body, 'email')) !== (await findUser(db, userId))?.email) {
      return ask(request, reply, principal, 'This is not the address of your account');
    }
    const outcome = await deleteAccount(context, userId);
    switch (outcome.kind) {
      case 'gone':
        throw notAuthenticated();
      case 'shared':
        return sendShared(reply, 409, outcome.organization);
      case 'deleted': {
        const changes = { organizationIds: outcome.organizationIds };
        await noteAccountEvent(context, request, { action: 'deleted', userId, changes });
        deleteSessionCookies(reply, config.publicUrl);
        return reply.redirect(`${basePath}/auth/login?notice=account-deleted`, 303);
      }
    }
  });

  /** @throws ApiError not_authenticated if the account was deleted meanwhile */
  async function ask(
    request: FastifyRequest,
    reply: FastifyReply,
    principal: SessionPrincipal,
    error?: string,
  ): Promise<FastifyReply> {
    const view = await readAccount(context, principal);
    if (view === null) throw notAuthenticated();
    const organizations = await organizationsOf(db, principal.userId);
    const shared = organizations.find(({ isAlone }) => !isAlone);
    if (shared !== undefined) return sendShared(reply, error === undefined ? 200 : 409, shared.name);
    const names = organizations.map(({ name }) => escapeHtml(name)).join(', ');
    const workspaces = view.workspaces.map(({ name }) => `<li>${escapeHtml(name)}</li>`).join('');
    return sendQuestion(context, request, reply, {
      path: ACCOUNT_DELETION_PATH,
      title: TITLE,
      lead: [
        `<p>This deletes the account of <strong>${escapeHtml(view.user.email)}</strong>.</p>`,
        ...(names === '' ? [] : [`<p>It also deletes ${names} with its API keys and workspaces:</p>`]),
        ...(workspaces === '' ? [] : [`<ul>${workspaces}</ul>`]),
      ],
      typed: { name: 'email', label: 'Type your e-mail address', type: 'email', autocomplete: 'off', error },
      submit: 'Delete the account',
    });
  }

  function sendShared(reply: FastifyReply, status: number, organization: string): FastifyReply {
    const text = `${escapeHtml(organization)} does not belong to you alone: ask the operator of this server to run <code>npm run people -- remove EMAIL</code> for you or for the others.`;
    return sendPage(reply, status, TITLE, [alert(text), backToAccount(basePath)]);
  }
};
