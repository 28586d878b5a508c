/**
 * The page on which an owner deletes a workspace.
 *
 * Callers: sessions of owners of the organization. The form needs our CSRF token. The limit is that of the management API
 * for sessions.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { forbidden, notFound } from '#api/errors.ts';
import { htmlPage, redirectTo } from '#api/http/media.ts';
import type { Workspace } from '#api/resources/workspaces/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { noteAccountEvent } from './account-event.ts';
import { deleteOwned, findOwned } from './deletion.ts';
import { ACCOUNT_PATH, acceptForms, fieldOf, formFields, workspaceDeletionPath } from './form.ts';
import { sendQuestion } from './question.ts';
import { senderOf, visitorOf } from './visitor.ts';

const PATH = workspaceDeletionPath(':workspaceId');
const params = Type.Object({ workspaceId: Type.String() });
const page = {
  schema: {
    params,
    response: { 200: htmlPage('A page that asks again.'), 302: redirectTo('the login page') },
  },
  config: { refuses: ['forbidden', 'not_found', 'too_many_requests'] },
} as const;
const deletion = {
  schema: {
    params,
    response: {
      303: redirectTo('the page of the account'),
      400: htmlPage('The page again: another name was typed.'),
    },
  },
  config: {
    refuses: ['bad_request', 'not_authenticated', 'forbidden', 'not_found', 'too_many_requests'],
    reads: formFields('name'),
    refusedAs: { action: 'deleted', targetType: 'workspace', param: 'workspaceId' },
  },
} as const;

export const workspaceDeletionPages: Routes = async (app, { context }) => {
  const { basePath } = app;
  acceptForms(app);

  app.get(PATH, page, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    return ask(request, reply, await ownedBy(principal.userId, request.params.workspaceId));
  });

  app.post(PATH, deletion, async (request, reply) => {
    const { userId } = await senderOf(context, request);
    const workspace = await ownedBy(userId, request.params.workspaceId);
    const { id, name, organizationId } = workspace;
    if (plain(fieldOf(request.body, 'name')) !== plain(name)) {
      return ask(request, reply, workspace, 'This is not the name of the workspace');
    }
    if (!(await deleteOwned(context, userId, workspace))) throw notFound('Workspace', id);
    const target = { type: 'workspace', id };
    await noteAccountEvent(context, request, {
      ...{ action: 'deleted', userId, organizationId, target, changes: {} },
    });
    return reply.redirect(`${basePath}${ACCOUNT_PATH}?notice=workspace-deleted`, 303);
  });

  /** @throws ApiError not_found, forbidden */
  async function ownedBy(userId: string, workspaceId: string): Promise<Workspace> {
    const owned = await findOwned(context.db, userId, workspaceId);
    switch (owned.kind) {
      case 'stranger':
        throw notFound('Workspace', workspaceId);
      case 'manager':
        throw forbidden('Only an owner of the organization may delete a workspace');
      case 'owned':
        return owned.workspace;
    }
  }

  function ask(
    request: FastifyRequest,
    reply: FastifyReply,
    { id, name }: Workspace,
    error?: string,
  ): FastifyReply {
    return sendQuestion(context, request, reply, {
      path: workspaceDeletionPath(id),
      title: 'Delete a workspace',
      lead: [
        `<p>This deletes <strong>${escapeHtml(name)}</strong> (id <code>${escapeHtml(id)}</code>) with its surveys, responses, contacts, files and webhooks, and the API keys that reach no other workspace.</p>`,
      ],
      typed: { name: 'name', label: `Type the name: ${name}`, type: 'text', autocomplete: 'off', error },
      submit: 'Delete the workspace',
    });
  }
};

/** A page shows several spaces as one, and people may type the same letters in another form. */
function plain(name: string): string {
  return name.normalize('NFC').replaceAll(/\s+/gu, ' ').trim();
}
