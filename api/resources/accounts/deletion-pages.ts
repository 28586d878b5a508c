/**
 * The pages that ask a second time before a workspace or the account is deleted for good: its name or its address has to
 * be typed.
 *
 * Callers: sessions, for a workspace those of owners of the organization. Forms need our CSRF token. The limit is that of
 * the management API for sessions.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { deleteSessionCookies } from '#api/auth/cookies.ts';
import { normalizeEmail } from '#api/auth/password.ts';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Context, Routes } from '#api/context.ts';
import { notAuthenticated, notFound } from '#api/errors.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, type Field, field, form } from '#api/http/page-form.ts';
import { organizationsOf } from '#api/resources/organizations/store.ts';
import { listWorkspaces, type Workspace } from '#api/resources/workspaces/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { noteAccountEvent } from './account-event.ts';
import { ACCOUNT_DELETION_PATH, ACCOUNT_PATH, workspaceDeletionPath } from './account-page.ts';
import { audited, backToAccount, Id, idOf, senderOf, visitorOf } from './account-routes.ts';
import { deleteAccount, deleteOwned, findOwned } from './deletion.ts';
import { acceptForms, fieldOf, protect } from './form.ts';
import { findUser } from './store.ts';

const WORKSPACES_NAMED_MAX = 500;

export const deletionPages: Routes = async (app, { context }) => {
  const { db, config } = context;
  const { basePath } = app;
  acceptForms(app);

  const workspacePath = workspaceDeletionPath(':id');

  app.get(workspacePath, { schema: { hide: true, params: Id } }, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    return askForWorkspace(request, reply, await findOwned(db, principal.userId, request.params.id));
  });

  app.post(workspacePath, audited('deleted', 'workspace', 'id'), async (request, reply) => {
    const { userId } = await senderOf(context, request);
    const workspace = await findOwned(db, userId, idOf(request));
    const { id, name, organizationId } = workspace;
    if (plain(fieldOf(request.body, 'name')) !== plain(name)) {
      return askForWorkspace(request, reply, workspace, 'This is not the name of the workspace');
    }
    if (!(await deleteOwned(context, userId, workspace))) throw notFound('Workspace', id);
    const target = { type: 'workspace', id };
    await noteAccountEvent(context, request, {
      ...{ action: 'deleted', userId, organizationId, target, changes: {} },
    });
    return reply.redirect(`${basePath}${ACCOUNT_PATH}?notice=workspace-deleted`, 303);
  });

  app.get(ACCOUNT_DELETION_PATH, { schema: { hide: true } }, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    return askForAccount(request, reply, principal);
  });

  app.post(ACCOUNT_DELETION_PATH, audited('deleted', 'user'), async (request, reply) => {
    const principal = await senderOf(context, request);
    const { userId } = principal;
    if (normalizeEmail(fieldOf(request.body, 'email')) !== (await findUser(db, userId))?.email) {
      return askForAccount(request, reply, principal, 'This is not the address of your account');
    }
    const outcome = await deleteAccount(context, userId);
    if (outcome.kind === 'gone') throw notAuthenticated();
    if (outcome.kind === 'shared') return sendShared(reply, 409, outcome.organization);
    const changes = { organizationIds: outcome.organizationIds };
    await noteAccountEvent(context, request, { action: 'deleted', userId, changes });
    deleteSessionCookies(reply, config.publicUrl);
    return reply.redirect(`${basePath}/auth/login?notice=account-deleted`, 303);
  });

  function askForWorkspace(
    request: FastifyRequest,
    reply: FastifyReply,
    { id, name }: Workspace,
    error?: string,
  ): FastifyReply {
    return ask(context, request, reply, workspaceDeletionPath(id), 'Delete the workspace', [
      `<p>This deletes <strong>${escapeHtml(name)}</strong> (id <code>${escapeHtml(id)}</code>) with its surveys, responses, contacts, files and webhooks, and the API keys that reach no other workspace.</p>`,
      { name: 'name', label: `Type the name: ${name}`, type: 'text', autocomplete: 'off', error },
    ]);
  }

  async function askForAccount(
    request: FastifyRequest,
    reply: FastifyReply,
    { userId, permissions }: SessionPrincipal,
    error?: string,
  ): Promise<FastifyReply> {
    const organizations = await organizationsOf(db, userId);
    const shared = organizations.find(({ isAlone }) => !isAlone);
    if (shared !== undefined) return sendShared(reply, error === undefined ? 200 : 409, shared.name);
    const page = { limit: WORKSPACES_NAMED_MAX, skip: 0 };
    const workspaces = await listWorkspaces(db, [...permissions.keys()], page);
    const names = organizations.map(({ name }) => escapeHtml(name)).join(', ');
    const items = workspaces.map(({ name }) => `<li>${escapeHtml(name)}</li>`).join('');
    return ask(context, request, reply, ACCOUNT_DELETION_PATH, 'Delete your account', [
      items === ''
        ? '<p>This deletes your account.</p>'
        : `<p>This deletes your account, and ${names} with its API keys and workspaces:</p><ul>${items}</ul>`,
      { name: 'email', label: 'Type your e-mail address', type: 'email', autocomplete: 'off', error },
    ]);
  }
};

/** Sends a page that asks for the name of what is deleted. With a mistake in it, the status is 400. */
function ask(
  context: Context,
  request: FastifyRequest,
  reply: FastifyReply,
  path: string,
  title: string,
  [lead, typed]: readonly [lead: string, typed: Field],
): FastifyReply {
  return sendPage(reply, typed.error === undefined ? 200 : 400, title, [
    lead,
    '<p>Nobody can bring it back.</p>',
    form(
      `${reply.server.basePath}${path}`,
      [protect(context, request, reply), field(typed)],
      title,
      'danger',
    ),
    backToAccount(reply.server.basePath),
  ]);
}

function sendShared(reply: FastifyReply, status: number, organization: string): FastifyReply {
  const text = `${escapeHtml(organization)} does not belong to you alone: ask the operator of this server to run <code>npm run people -- remove EMAIL</code> for you or for the others.`;
  return sendPage(reply, status, 'Delete your account', [alert(text), backToAccount(reply.server.basePath)]);
}

/** A page shows several spaces as one, and people may type the same letters in another form. */
function plain(name: string): string {
  return name.normalize('NFC').replaceAll(/\s+/gu, ' ').trim();
}
