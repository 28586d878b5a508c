/**
 * The account page after the login, and the routes of its forms.
 *
 * Callers: sessions. Forms need our CSRF token. The limit is that of the management API for sessions.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { SessionPrincipal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { ApiError, notAuthenticated } from '#api/errors.ts';
import { htmlPage, redirectTo } from '#api/http/media.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, links, notice } from '#api/http/page-form.ts';
import { createApiKey } from '#api/resources/api-keys/create.ts';
import { revokeApiKey } from '#api/resources/api-keys/revoke.ts';
import type { ApiKey } from '#api/resources/api-keys/store.ts';
import { managed } from '#api/resources/organizations/access.ts';
import { escapeHtml } from '#shared/page.ts';
import { noteAccountEvent } from './account-event.ts';
import { ACCOUNT_PATH, acceptForms, fieldOf, formFields } from './form.ts';
import { accountParts, readAccount } from './home-view.ts';
import { newKeyFrom } from './new-key.ts';
import { protect } from './protection.ts';
import { senderOf, visitorOf } from './visitor.ts';

/** Requests for pages count for the limit of the session, and forms need our CSRF token. */
const refuses = [
  'bad_request',
  'not_authenticated',
  'unauthorized',
  'forbidden',
  'too_many_requests',
] as const;
const toAccount = redirectTo('the page of the account');
const accountPage = {
  schema: { response: { 200: htmlPage('A page.'), 302: redirectTo('the login page') } },
  config: { refuses: ['too_many_requests'] },
} as const;
const newKey = {
  schema: {
    response: {
      200: htmlPage('A page with the key.'),
      400: htmlPage('The page of the account, with the mistakes.'),
    },
  },
  config: {
    refuses,
    reads: formFields('label', 'permission', 'reach'),
    refusedAs: { action: 'created', targetType: 'apiKey', param: null },
  },
} as const;
const reloaded = { schema: { response: { 302: toAccount } } };
const revocation = {
  schema: {
    params: Type.Object({ id: Type.String() }),
    response: { 303: toAccount, 404: htmlPage('The page of the account: the key was not revoked.') },
  },
  config: {
    refuses,
    reads: formFields(),
    refusedAs: { action: 'deleted', targetType: 'apiKey', param: 'id' },
  },
} as const;
const notices: ReadonlyMap<string, string> = new Map([
  ['revoked', 'The key is revoked.'],
  ['workspace-deleted', 'The workspace is deleted.'],
]);
const NO_FORM = { label: '', error: undefined };

export const accountHomeRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const { basePath } = app;
  acceptForms(app);

  app.get(ACCOUNT_PATH, accountPage, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    const news = notices.get(fieldOf(request.query, 'notice'));
    return sendAccount(request, reply, principal, news === undefined ? '' : notice(news));
  });

  app.post(`${ACCOUNT_PATH}/api-keys`, newKey, async (request, reply) => {
    const principal = await senderOf(context, request);
    try {
      const wanted = await newKeyFrom(db, request.body, managed(principal));
      const { key, apiKey } = await createApiKey(context, principal, wanted);
      await noteKey(request, principal, 'created', key);
      return sendPage(reply, 200, 'Your new API key', [
        ...newKeyText(key.label, apiKey, config.publicUrl),
        links([[`${basePath}${ACCOUNT_PATH}`, 'Back to your account']]),
      ]);
    } catch (error) {
      if (!(error instanceof ApiError) || error.statusCode !== 400) throw error;
      const { label } = error.details;
      const isAboutLabel = typeof label === 'string';
      const message = isAboutLabel ? 'Please check what is marked below.' : error.message;
      return sendAccount(
        request,
        reply,
        principal,
        alert(escapeHtml(message)),
        { label: fieldOf(request.body, 'label'), error: isAboutLabel ? `The name ${label}` : undefined },
        400,
      );
    }
  });

  app.post(`${ACCOUNT_PATH}/api-keys/:id/revoke`, revocation, async (request, reply) => {
    const principal = await senderOf(context, request);
    const { id } = request.params;
    const key = await revokeApiKey(db, principal, id);
    if (key === null) {
      const message = 'This key does not exist any more, or you may not revoke it.';
      return sendAccount(request, reply, principal, alert(message), NO_FORM, 404);
    }
    await noteKey(request, principal, 'deleted', key);
    return reply.redirect(`${basePath}${ACCOUNT_PATH}?notice=revoked`, 303);
  });

  /** A person who reloads one of the pages above requests the address that its form was sent to. */
  app.get(`${ACCOUNT_PATH}/api-keys`, reloaded, async (_request, reply) =>
    reply.redirect(`${basePath}${ACCOUNT_PATH}`),
  );

  /** Writes the same audit entry as the routes for programs. */
  function noteKey(
    request: FastifyRequest,
    { userId }: SessionPrincipal,
    action: 'created' | 'deleted',
    { id, organizationId }: ApiKey,
  ): Promise<void> {
    const target = { type: 'apiKey', id };
    return noteAccountEvent(context, request, { action, userId, organizationId, target, changes: {} });
  }

  async function sendAccount(
    request: FastifyRequest,
    reply: FastifyReply,
    principal: SessionPrincipal,
    message: string,
    state: { readonly label: string; readonly error: string | undefined } = NO_FORM,
    status = 200,
  ): Promise<FastifyReply> {
    const view = await readAccount(context, principal);
    if (view === null) throw notAuthenticated();
    const protection = protect(context, request, reply);
    return sendPage(
      reply,
      status,
      'Your account',
      [message, ...accountParts(view, protection, basePath, state)],
      { isWide: true },
    );
  }
};

function newKeyText(label: string, apiKey: string, publicUrl: string): readonly string[] {
  return [
    notice(`The key “${escapeHtml(label)}” is made. It is shown only this once: copy it now.`),
    `<pre><code>${escapeHtml(apiKey)}</code></pre>`,
    '<p>To see that it works:</p>',
    `<pre><code>curl -H 'x-api-key: ${escapeHtml(apiKey)}' ${escapeHtml(publicUrl)}/api/v1/management/me</code></pre>`,
  ];
}
