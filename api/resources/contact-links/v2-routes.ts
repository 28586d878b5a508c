/**
 * Personal links to a survey, on v2. A response through such a link belongs to the contact.
 *
 * Callers: API keys with the right to read the workspace.
 */
import { Type } from 'typebox';
import { requireRight } from '#api/auth/plugin.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, notFound } from '#api/errors.ts';
import { findContact } from '#api/resources/contacts/store.ts';
import { newContactLink } from '#api/resources/surveys/contact-link.ts';
import { findSurvey } from '#api/resources/surveys/store.ts';
import { Id, Nullable } from '#api/schemas.ts';
import { linkAddressOf } from '#api/survey-url.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';

const DAY: Millis = 24 * 60 * 60 * 1000;

export const v2ContactLinkRoutes: Routes = async (app, { context }) => {
  const { db, clock, config, random, signer } = context;

  app.get(
    '/api/v2/management/surveys/:surveyId/contact-links/contacts/:contactId',
    {
      schema: {
        params: Type.Object({ surveyId: Id, contactId: Id }),
        querystring: Type.Object({
          expirationDays: Type.Optional(Type.Integer({ minimum: 1, maximum: 365 })),
        }),
        response: {
          200: Type.Object({
            data: Type.Object({ surveyUrl: Type.String(), expiresAt: Nullable(Type.String()) }),
          }),
        },
      },
      config: { refuses: ['bad_request', 'not_found'] },
    },
    async (request) => {
      const { surveyId, contactId } = request.params;
      const { expirationDays } = request.query;
      const survey = await findSurvey(db, surveyId);
      if (survey === null) throw notFound('Survey', surveyId);
      requireRight(request, survey.workspaceId);
      if (survey.content.type !== 'link') {
        const problem = 'Only link surveys have links; this one is shown in apps';
        throw badRequest(problem, { surveyId: problem });
      }
      if ((await findContact(db, survey.workspaceId, contactId)) === null) {
        throw notFound('Contact', contactId);
      }
      // Rounded to a full second, which is the unit in the link.
      const expiresAt =
        expirationDays === undefined ? null : Math.ceil((clock() + expirationDays * DAY) / 1_000) * 1_000;
      const address = linkAddressOf(config, survey.id);
      return {
        data: {
          surveyUrl: newContactLink({ signer, random }, address, survey, { contactId, expiresAt }),
          expiresAt: expiresAt === null ? null : toTimestamp(expiresAt),
        },
      };
    },
  );
};
