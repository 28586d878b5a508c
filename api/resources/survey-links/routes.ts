/**
 * The address of link surveys in Formbricks. This service shows no surveys: people who open such a link are redirected
 * to SURVEY_URL, or learn that it is not set. The reply is the same for every id, so it does not reveal which surveys
 * exist.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { sendPage } from '#api/http/page.ts';
import { isId } from '#api/values/ids.ts';
import { addressOf } from '#api/values/survey-url.ts';

export const surveyLinkRoutes: Routes = async (app, { context }) => {
  const { surveyUrl, publicUrl } = context.config;
  // A proxy in front may show surveys at this very path. A redirect to the same path would never end.
  const isElsewhere = surveyUrl !== null && !surveyUrl.startsWith(`${publicUrl}/s/`);

  app.get(
    '/s/:surveyId',
    {
      schema: { hide: true, params: Type.Object({ surveyId: Type.String() }) },
    },
    async (request, reply) => {
      const { surveyId } = request.params;
      if (isElsewhere && isId(surveyId)) {
        const url = new URL(addressOf(surveyUrl, surveyId));
        // The query of the link has the id and the proofs that make it work.
        const { searchParams } = new URL(request.url, 'http://localhost');
        for (const [name, value] of searchParams) url.searchParams.append(name, value);
        return reply.redirect(url.href);
      }
      return sendPage(reply, 404, 'This survey cannot be shown here', [
        '<p>The link is complete, but this service only keeps surveys and answers; it has no page to answer them on.</p>',
        '<p>Did somebody send you this link? Please tell them that it does not work yet.</p>',
        '<p class="hint">Do you run this service? Set <code>SURVEY_URL</code> to the address where surveys are answered.</p>',
      ]);
    },
  );
};
