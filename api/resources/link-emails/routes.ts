/**
 * Mails the link of a link survey. The link contains the proof of the address that some surveys require.
 *
 * Callers: API keys and sessions with the right to write to the survey's workspace, limited by the caller's address.
 */
import { Type } from 'typebox';
import { emailIn } from '#api/auth/password.ts';
import { requireRight } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing } from '#api/errors.ts';
import { verifiedEmailToken } from '#api/resources/responses/submission-checks.ts';
import { isOpen } from '#api/resources/surveys/answered.ts';
import { newLink } from '#api/resources/surveys/single-use.ts';
import { findSurvey, type Survey } from '#api/resources/surveys/store.ts';
import { addressOf, type SurveyUrl, withQuery } from '#api/values/survey-url.ts';

const SUBJECT_LENGTH_MAX = 200;

export const linkEmailRoutes: Routes = async (app, { context }) => {
  const { clock, config, db, mailer, signer } = context;

  app.post(
    '/api/v1/management/surveys/:surveyId/link-emails',
    {
      schema: {
        summary: 'Send the link of a survey by e-mail',
        params: Type.Object({ surveyId: Type.String() }),
        body: Type.Object({ email: Type.String() }),
        response: { 200: Type.Object({ data: Type.Object({ success: Type.String() }) }) },
      },
      config: { limit: 'actions.sendLinkSurveyEmail' },
    },
    async (request) => {
      const { surveyId } = request.params;
      const survey = existing(await findSurvey(db, surveyId), 'Survey', surveyId);
      requireRight(request, survey.workspaceId);
      if (survey.content.type !== 'link')
        throw badRequest('Only link surveys have a link; this one is shown in apps');
      if (!isOpen(survey, clock())) {
        throw badRequest(
          'The survey takes no responses; first set its status to inProgress, and closeOn to null or a later date',
        );
      }
      const email = emailIn(request.body.email);
      if (config.surveyUrl === null) {
        throw badRequest(
          'There is no page to link to yet: the operator of this service has to set SURVEY_URL to the address where surveys are answered',
        );
      }
      const link = linkFor(config.surveyUrl, survey, email);
      await db.transaction().execute((trx) =>
        mailer.accept(trx, {
          kind: 'surveyLink',
          workspaceId: survey.workspaceId,
          to: email,
          subject: `Your link to ${oneLine(survey.content.name)}`,
          body: `Open this link to take part in "${oneLine(survey.content.name)}":\n\n${link}\n`,
        }),
      );
      return { data: { success: 'The mail with the link is on its way' } };
    },
  );

  function linkFor(surveyUrl: SurveyUrl, survey: Survey, email: string): string {
    return withQuery(newLink(context, addressOf(surveyUrl, survey.id), survey), {
      verify: verifiedEmailToken(survey.id, email, signer),
    });
  }
};

function oneLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ').slice(0, SUBJECT_LENGTH_MAX);
}
