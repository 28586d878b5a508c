/**
 * The account page after the login, and the routes of its forms.
 *
 * Callers: sessions. Forms need our CSRF token. The limit is that of the management API for sessions.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { sessionCookie } from '#api/auth/cookies.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import { authenticateSession } from '#api/auth/session.ts';
import type { Context, Routes } from '#api/context.ts';
import { ApiError, forbidden, notAuthenticated, tooManyRequests, unauthorized } from '#api/errors.ts';
import { sendPage } from '#api/http/page.ts';
import { alert, links, notice } from '#api/http/page-form.ts';
import { createApiKey, type NewApiKey, revokeApiKey } from '#api/resources/api-keys/create.ts';
import { managed } from '#api/resources/organizations/access.ts';
import { escapeHtml } from '#shared/page.ts';
import { ACCOUNT_PATH, sendAccount } from './account-page.ts';
import { acceptForms, fieldOf, isFormOurs } from './form.ts';

const hidden = { schema: { hide: true } } as const;
const Id = Type.Object({ id: Type.String() });

const notices: ReadonlyMap<string, string> = new Map([['revoked', 'The key is revoked.']]);

export const accountHomeRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const { basePath } = app;
  acceptForms(app);

  app.get(ACCOUNT_PATH, hidden, async (request, reply) => {
    const principal = await visitorOf(context, request);
    if (principal === null) return reply.redirect(`${basePath}/auth/login`);
    const news = notices.get(fieldOf(request.query, 'notice'));
    const message = news === undefined ? '' : notice(news);
    return sendAccount(context, request, reply, principal, { message });
  });

  app.post(`${ACCOUNT_PATH}/api-keys`, hidden, async (request, reply) => {
    const principal = await senderOf(context, request);
    const label = fieldOf(request.body, 'label');
    try {
      const { key, apiKey } = await createApiKey(context, principal, newKeyFrom(request.body, principal));
      return sendPage(reply, 200, 'Your new API key', [
        ...newKeyText(key.label, apiKey, config.publicUrl),
        backToAccount(basePath),
      ]);
    } catch (error) {
      if (!(error instanceof ApiError) || error.statusCode !== 400) throw error;
      const problem = error.details.label;
      const isAboutLabel = typeof problem === 'string';
      return sendAccount(context, request, reply, principal, {
        status: 400,
        message: alert(isAboutLabel ? 'Please check what is marked below.' : escapeHtml(error.message)),
        label,
        error: isAboutLabel ? `The name ${problem}` : undefined,
      });
    }
  });

  app.post(
    `${ACCOUNT_PATH}/api-keys/:id/revoke`,
    { schema: { hide: true, params: Id } },
    async (request, reply) => {
      const principal = await senderOf(context, request);
      const key = await revokeApiKey(db, principal, idOf(request));
      if (key === null) {
        const message = alert('This key does not exist any more, or you may not revoke it.');
        return sendAccount(context, request, reply, principal, { status: 404, message });
      }
      return reply.redirect(`${basePath}${ACCOUNT_PATH}?notice=revoked`, 303);
    },
  );
};

/**
 * Finds the person who opens a page of the account. Counts the request for the limit of the management API for sessions.
 *
 * @returns null without a session
 * @throws ApiError too_many_requests
 */
async function visitorOf(
  { db, clock, limits }: Pick<Context, 'db' | 'clock' | 'limits'>,
  request: FastifyRequest,
): Promise<SessionPrincipal | null> {
  const token = sessionCookie(request.cookies);
  const principal = token === null ? null : await authenticateSession(db, token, clock);
  if (principal === null) return null;
  // The audit log names the caller.
  request.principal = principal;
  const outcome = await limits.consume('api.v1', `user:${principal.userId}`);
  if (!outcome.isAllowed) throw tooManyRequests(outcome.retryAfterSeconds);
  return principal;
}

/** @throws ApiError not_authenticated; forbidden when the form is not ours */
async function senderOf(context: Context, request: FastifyRequest): Promise<SessionPrincipal> {
  if (!isFormOurs(request, context)) {
    throw forbidden('The form was too old. Go back to your account and try again.');
  }
  const principal = await visitorOf(context, request);
  if (principal === null) throw notAuthenticated();
  return principal;
}

function idOf({ params }: FastifyRequest): string {
  return fieldOf(params, 'id');
}

/** Reads the form for a new key. @throws ApiError unauthorized if the user may not give this access */
function newKeyFrom(body: unknown, principal: SessionPrincipal): NewApiKey {
  const permission = fieldOf(body, 'permission');
  const [organizationId = '', workspaceId] = fieldOf(body, 'reach').split(':');
  if (!managed(principal).includes(organizationId) || !isPermission(permission)) throw unauthorized();
  return {
    organizationId,
    label: fieldOf(body, 'label'),
    organizationAccess: undefined,
    reach:
      workspaceId === undefined
        ? { allWorkspaces: permission }
        : { workspacePermissions: [{ workspaceId, permission }] },
  };
}

function isPermission(text: string): text is Permission {
  return text === 'read' || text === 'write' || text === 'manage';
}

function newKeyText(label: string, apiKey: string, publicUrl: string): readonly string[] {
  return [
    notice(`The key “${escapeHtml(label)}” is made. It is shown only this once: copy it now.`),
    `<pre><code>${escapeHtml(apiKey)}</code></pre>`,
    '<p>To see that it works:</p>',
    `<pre><code>curl -H 'x-api-key: ${escapeHtml(apiKey)}' ${escapeHtml(publicUrl)}/api/v1/management/me</code></pre>`,
  ];
}

function backToAccount(basePath: string): string {
  return links([[`${basePath}${ACCOUNT_PATH}`, 'Back to your account']]);
}
