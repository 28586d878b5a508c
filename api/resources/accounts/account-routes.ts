/**
 * The account page after the login, and the routes of its forms.
 *
 * Callers: sessions. Forms need our CSRF token. The limit is that of the management API for sessions.
 */
import { Type } from 'typebox';
import { emailIn } from '#api/auth/password.ts';
import { forPeople, sessionOf } from '#api/auth/plugin.ts';
import type { Permission, SessionPrincipal } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { notFound, unauthorized } from '#api/errors.ts';
import { links, notice, sendPage } from '#api/http/page.ts';
import { createGuesses } from '#api/limits/guesses.ts';
import { createApiKey, type NewApiKey, revokeApiKey } from '#api/resources/api-keys/store.ts';
import { escapeHtml } from '#shared/page.ts';
import { ACCOUNT_PATH, EMAIL_PATH, KEYS_PATH, sendAccount } from './account-page.ts';
import { askForEmail } from './actions.ts';
import { acceptForms, fieldOf, requireOwnForms, showAgain } from './form.ts';
import { saidIn } from './pages.ts';

const hide = { hide: true } as const;
const ofPerson = { ...forPeople, isForm: true, limit: 'api.v1' } as const;

export const accountRoutes: Routes = async (app, { context }) => {
  const { db, config } = context;
  const account = `${app.basePath}${ACCOUNT_PATH}`;
  const guesses = createGuesses('profile.password', context);
  acceptForms(app);
  requireOwnForms(app, context);
  showAgain(app, (request, reply, shown) => sendAccount(context, reply, sessionOf(request), shown));

  app.get(ACCOUNT_PATH, { schema: hide, config: ofPerson }, async (request, reply) =>
    sendAccount(context, reply, sessionOf(request), { message: saidIn(request.query) }),
  );

  app.post(
    EMAIL_PATH,
    {
      schema: hide,
      config: { ...ofPerson, limit: 'actions.emailUpdate' },
    },
    async (request, reply) => {
      const email = emailIn(fieldOf(request.body, 'email'));
      const password = fieldOf(request.body, 'password');
      await askForEmail(context, guesses, sessionOf(request).userId, { email, password });
      return reply.redirect(`${account}?notice=mailed`, 303);
    },
  );

  app.post(KEYS_PATH, { schema: hide, config: ofPerson }, async (request, reply) => {
    const principal = sessionOf(request);
    const wanted = newKeyFrom(request.body, principal);
    const apiKey = await createApiKey(context, principal, wanted);
    return sendPage(reply, 200, 'Your new API key', [
      notice(`The key “${escapeHtml(wanted.label)}” is made. It is shown only this once: copy it now.`),
      `<pre><code>${escapeHtml(apiKey)}</code></pre>`,
      '<p>To see that it works:</p>',
      `<pre><code>curl -H 'x-api-key: ${escapeHtml(apiKey)}' ${escapeHtml(config.publicUrl)}/api/v1/management/me</code></pre>`,
      links([[account, 'Back to your account']]),
    ]);
  });

  app.post(
    `${KEYS_PATH}/:id/revoke`,
    {
      schema: { ...hide, params: Type.Object({ id: Type.String() }) },
      config: ofPerson,
    },
    async (request, reply) => {
      const { id } = request.params;
      if (!(await revokeApiKey(db, sessionOf(request), id))) throw notFound('API Key', id);
      return reply.redirect(`${account}?notice=revoked`, 303);
    },
  );
};

/** Reads the form for a new key. @throws ApiError unauthorized if the user may not give this access */
function newKeyFrom(body: unknown, principal: SessionPrincipal): NewApiKey {
  const permission = fieldOf(body, 'permission');
  const [organizationId = '', workspaceId] = fieldOf(body, 'reach').split(':');
  if (!principal.organizationIds.includes(organizationId) || !isPermission(permission)) throw unauthorized();
  return { organizationId, label: fieldOf(body, 'label'), workspaceId, permission };
}

function isPermission(text: string): text is Permission {
  return text === 'read' || text === 'write' || text === 'manage';
}
