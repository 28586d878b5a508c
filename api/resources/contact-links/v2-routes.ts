/**
 * Personal links to a survey, on v2. A response through such a link belongs to the contact.
 *
 * Callers: API keys with the right to read the workspace.
 */

import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import { requireRight } from '#api/auth/plugin.ts';
import { limitConcurrency } from '#api/concurrency.ts';
import type { Routes } from '#api/context.ts';
import { badRequest, existing, invalidFields, notFound } from '#api/errors.ts';
import { ListMeta } from '#api/http/v2-pagination.ts';
import { type Attributes, attributesOf, findContact } from '#api/resources/contacts/store.ts';
import { findSegment } from '#api/resources/segments/store.ts';
import { newContactLink } from '#api/resources/surveys/contact-link.ts';
import { findSurvey, type Survey } from '#api/resources/surveys/store.ts';
import { Id, MapOf, Nullable } from '#api/schemas.ts';
import { linkAddressOf } from '#api/survey-url.ts';
import { toTimestamp } from '#api/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { membersOf } from './segment-members.ts';

const DAY: Millis = 24 * 60 * 60 * 1000;
const ATTRIBUTE_KEYS_MAX = 20;
const SKIP_MAX = 1_000_000;
/** Finding the members of a segment takes long with many contacts. */
const SEARCHES = { runningMax: 2, waitingMax: 10, retryAfterSeconds: 5 };

const expirationDays = Type.Optional(Type.Integer({ minimum: 1, maximum: 365 }));

export const v2ContactLinkRoutes: Routes = async (app, { context }) => {
  const { db, clock, config } = context;
  const search = limitConcurrency(membersOf, SEARCHES, (_db, { workspaceId }) => workspaceId);

  app.get(
    '/api/v2/management/surveys/:surveyId/contact-links/contacts/:contactId',
    {
      schema: {
        params: Type.Object({ surveyId: Id, contactId: Id }),
        querystring: Type.Object({
          expirationDays,
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
      const survey = await linkSurvey(request, surveyId);
      if ((await findContact(db, survey.workspaceId, contactId)) === null) {
        throw notFound('Contact', contactId);
      }
      return { data: linkTo(survey, contactId, expirationDays) };
    },
  );

  app.get(
    '/api/v2/management/surveys/:surveyId/contact-links/segments/:segmentId',
    {
      schema: {
        params: Type.Object({ surveyId: Id, segmentId: Id }),
        querystring: Type.Object({
          limit: Type.Optional(Type.Integer({ minimum: 1, maximum: 250 })),
          skip: Type.Optional(Type.Integer({ minimum: 0, maximum: SKIP_MAX })),
          expirationDays,
          attributeKeys: Type.Optional(
            Type.String({ description: 'Keys of attributes for the reply, separated by commas.' }),
          ),
        }),
        response: {
          200: Type.Object({
            data: Type.Array(
              Type.Object({
                contactId: Type.String(),
                surveyUrl: Type.String(),
                expiresAt: Nullable(Type.String()),
                attributes: MapOf(Type.String()),
              }),
            ),
            meta: ListMeta,
          }),
        },
      },
      config: { refuses: ['bad_request', 'not_found'] },
    },
    async (request) => {
      const { surveyId, segmentId } = request.params;
      const { limit = 50, skip = 0, expirationDays } = request.query;
      const keys = attributeKeysFrom(request.query.attributeKeys);
      const survey = await linkSurvey(request, surveyId);
      const segment = await findSegment(db, segmentId);
      if (segment === null || segment.workspaceId !== survey.workspaceId)
        throw notFound('Segment', segmentId);
      const { ids, total } = await search(db, segment, { limit, skip }, clock());
      const attributes = keys.length === 0 ? new Map<string, Attributes>() : await attributesOf(db, ids);
      return {
        data: ids.map((contactId) => ({
          contactId,
          ...linkTo(survey, contactId, expirationDays),
          attributes: picked(attributes.get(contactId) ?? {}, keys),
        })),
        meta: { total, limit, offset: skip },
      };
    },
  );

  /** @throws ApiError not_found; unauthorized; bad_request if the survey has no links */
  async function linkSurvey(request: FastifyRequest, surveyId: string): Promise<Survey> {
    const survey = existing(await findSurvey(db, surveyId), 'Survey', surveyId);
    requireRight(request, survey.workspaceId);
    if (survey.content.type !== 'link') {
      const problem = 'Only link surveys have links; this one is shown in apps';
      throw badRequest(problem, { surveyId: problem });
    }
    return survey;
  }

  function linkTo(survey: Survey, contactId: string, days: number | undefined) {
    // Rounded to a full second, which is the unit in the link.
    const expiresAt = days === undefined ? null : Math.ceil((clock() + days * DAY) / 1_000) * 1_000;
    const address = linkAddressOf(config, survey.id);
    return {
      surveyUrl: newContactLink(context, address, survey, { contactId, expiresAt }),
      expiresAt: expiresAt === null ? null : toTimestamp(expiresAt),
    };
  }
};

/** @throws ApiError invalid_fields */
function attributeKeysFrom(text: string | undefined): readonly string[] {
  const keys = (text ?? '').split(',').map((key) => key.trim());
  if (keys.length > ATTRIBUTE_KEYS_MAX) {
    throw invalidFields({ attributeKeys: `must not have more than ${ATTRIBUTE_KEYS_MAX} keys` });
  }
  return keys.filter((key) => key !== '');
}

function picked(attributes: Attributes, keys: readonly string[]): Record<string, string> {
  return Object.fromEntries(
    keys.flatMap((key) => {
      const value = Object.hasOwn(attributes, key) ? attributes[key] : undefined;
      return value === undefined ? [] : [[key, value]];
    }),
  );
}
