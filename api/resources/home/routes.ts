/**
 * The start page: describes the service, tells whether it is ready, and links to other pages. Programs get JSON, people
 * a page.
 *
 * Callers: anybody.
 */
import type { FastifyBaseLogger } from 'fastify';
import { sql } from 'kysely';
import { sessionCookie } from '#api/auth/cookies.ts';
import { findSession } from '#api/auth/session.ts';
import type { Routes } from '#api/context.ts';
import { serviceUnavailable } from '#api/errors.ts';
import { prefersHtml } from '#api/http/error-page.ts';
import { alert, notice, sendPage } from '#api/http/page.ts';
import { ACCOUNT_PATH } from '#api/resources/accounts/account-page.ts';
import { escapeHtml } from '#shared/page.ts';

const REFERENCE_PATH = '/api/docs';

export const homeRoutes: Routes = async (app, { context }) => {
  const { db, clock, config } = context;
  const { publicUrl } = config;
  const { basePath } = app;

  app.get('/', { schema: { hide: true } }, async (request, reply) => {
    const isReady = await isDatabaseThere(request.log);
    reply.header('vary', 'accept');
    if (!prefersHtml(request)) {
      if (!isReady)
        throw serviceUnavailable('The database does not answer. Please try again in a few seconds.');
      return { status: 'ok', documentation: `${publicUrl}${REFERENCE_PATH}` };
    }
    const token = isReady ? sessionCookie(request.cookies) : null;
    const isLoggedIn = token !== null && (await findSession(db, token, clock)) !== null;
    const isOpen = isReady && !isLoggedIn && context.config.isSignupEnabled;
    return sendPage(reply, isReady ? 200 : 503, 'Surveys and feedback', [
      isReady
        ? notice('This service is ready.')
        : alert('This service is not ready: its database does not answer. Its log says why.'),
      '<p>Floodgate runs here: a survey API that Formbricks clients can use, behind a gateway that limits how often each client may call.</p>',
      `<p class="row">${
        isLoggedIn
          ? `<a class="primary" href="${basePath}${ACCOUNT_PATH}">Your account</a>`
          : `<a class="primary" href="${basePath}/auth/login">Log in</a>${isOpen ? ` <a href="${basePath}/auth/signup">Create an account</a>` : ''}`
      }</p>`,
      '<h2>For programs</h2>',
      `<p>A program sends an API key, which you make in your account:</p>
<pre><code>curl -H 'x-api-key: fbk_…' ${escapeHtml(publicUrl)}/api/v1/management/me</code></pre>
<p><a href="${basePath}${REFERENCE_PATH}">The OpenAPI document</a> describes every route with its parameters and replies.</p>`,
      '<h2>For operators</h2>',
      '<p>The installation has the documents: <code>README.md</code> to begin with, <code>docs/getting-started.md</code> for a tour, <code>docs/operating.md</code> and <code>docs/configuration.md</code> to run it.</p>',
    ]);
  });

  function isDatabaseThere(log: FastifyBaseLogger): Promise<boolean> {
    return sql`select 1`.execute(db).then(
      () => true,
      (error: unknown) => {
        log.error({ err: error }, 'the start page could not read the database');
        return false;
      },
    );
  }
};
