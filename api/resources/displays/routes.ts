/** Displays on the client API. No key (contract client-api.md §3 to §5). */
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox';
import type { Kysely } from 'kysely';
import { Type } from 'typebox';
import type { Context } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { badRequest, forbidden, notFound } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { findContact, findOrCreateContact } from '#api/resources/contacts/store.ts';
import { findResponse, findResponseIdOfDisplay, setResponseDisplay } from '#api/resources/responses/store.ts';
import { findSurvey } from '#api/resources/surveys/store.ts';
import { findsPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { Id, Nullable } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { type Display, findDisplay, insertDisplay, setDisplayContact } from './store.ts';

const UserId = Type.Optional(
  Nullable(Type.String({ maxLength: 255, text: 'User ID cannot exceed 255 characters' })),
);

const NewDisplayV1 = Type.Object({ surveyId: Id, userId: UserId });
const NewDisplayV2 = Type.Object({ surveyId: Id, contactId: Type.Optional(Nullable(Type.String())) });
const Created = Type.Object({
  data: Type.Object({
    id: Type.String(),
    contactId: Type.Union([Type.String(), Type.Null()]),
    surveyId: Type.String(),
  }),
});

const Link = Type.Object({ responseId: Type.Optional(Nullable(Type.String())), userId: UserId });
const WorkspaceParams = Type.Object({ workspaceId: Type.String() });
const DisplayParams = Type.Object({ workspaceId: Type.String(), displayId: Type.String() });

export const clientDisplayRoutes: FastifyPluginAsyncTypebox<{ readonly context: Context }> = async (
  app,
  { context },
) => {
  const { db, clock, random } = context;
  const findsWorkspace = findsPathWorkspace(context);

  app.post(
    '/api/v1/client/:workspaceId/displays',
    {
      schema: { params: WorkspaceParams, body: NewDisplayV1, response: { 200: Created } },
      onRequest: findsWorkspace,
    },
    async (request) => {
      const { id: workspaceId } = workspaceOf(request);
      const { surveyId, userId } = request.body;
      return create(workspaceId, surveyId, async (trx, now) =>
        userId ? (await findOrCreateContact(trx, workspaceId, userId, now, random)).id : null,
      );
    },
  );

  app.post(
    '/api/v2/client/:workspaceId/displays',
    {
      schema: { params: WorkspaceParams, body: NewDisplayV2, response: { 200: Created } },
      onRequest: findsWorkspace,
      config: { malformedJsonMessage: 'Invalid JSON in request body' },
    },
    async (request) => {
      const { id: workspaceId } = workspaceOf(request);
      const { surveyId, contactId } = request.body;
      return create(workspaceId, surveyId, async (trx) =>
        // An unknown contact does not cost the survey its display.
        contactId ? ((await findContact(trx, workspaceId, contactId))?.id ?? null) : null,
      );
    },
  );

  async function create(
    workspaceId: string,
    surveyId: string,
    contactIdIn: (trx: Kysely<Database>, now: Timestamp) => Promise<string | null>,
  ) {
    const survey = await findSurvey(db, surveyId);
    if (survey === null || survey.workspaceId !== workspaceId) throw notFound('Survey', surveyId);
    if (survey.content.status !== 'inProgress') {
      throw forbidden('Survey is not accepting submissions', { surveyId });
    }
    const now = toTimestamp(clock());
    const display = await db.transaction().execute(async (trx): Promise<Display> => {
      const contactId = await contactIdIn(trx, now);
      const made = { id: newId(random), surveyId, workspaceId, contactId, createdAt: now, updatedAt: now };
      await insertDisplay(trx, made);
      return made;
    });
    return { data: { id: display.id, contactId: display.contactId, surveyId } };
  }

  /** Links a display to a response or a user (SPEC.md §4). */
  app.put(
    '/api/v1/client/:workspaceId/displays/:displayId',
    {
      schema: {
        params: DisplayParams,
        body: Link,
        response: { 200: Type.Object({ data: Type.Object({}) }) },
      },
      onRequest: findsWorkspace,
    },
    async (request) => {
      const { id: workspaceId } = workspaceOf(request);
      const { displayId } = request.params;
      const { responseId, userId } = request.body;
      const display = await findDisplay(db, displayId);
      if (display === null || display.workspaceId !== workspaceId) throw notFound('Display', displayId);
      const now = toTimestamp(clock());
      await db.transaction().execute(async (trx) => {
        if (userId) {
          const contact = await findOrCreateContact(trx, workspaceId, userId, now, random);
          await setDisplayContact(trx, display.id, contact.id, now);
        }
        if (responseId) await link(trx, display, responseId, now);
      });
      return { data: {} };
    },
  );

  /** A display and a response have at most one of each other; saying the same again changes nothing. */
  async function link(
    trx: Kysely<Database>,
    display: Display,
    responseId: string,
    now: Timestamp,
  ): Promise<void> {
    const response = await findResponse(trx, responseId);
    if (response === null || response.surveyId !== display.surveyId) {
      throw badRequest('The response does not belong to the survey of this display', { responseId });
    }
    if (response.displayId === display.id) return;
    if (response.displayId !== null) {
      throw badRequest('The response is linked to another display', { responseId });
    }
    try {
      await setResponseDisplay(trx, response.id, display.id, now);
    } catch (error) {
      if (!isUniqueViolation(error)) throw error;
      throw badRequest('The display is linked to another response', { responseId });
    }
  }

  /** Which response came of a display: SDKs ask after an interrupted submission. */
  app.get(
    '/api/v1/client/:workspaceId/displays/:displayId/response',
    {
      schema: {
        params: DisplayParams,
        response: {
          200: Type.Object({
            data: Type.Object({ responseId: Type.Union([Type.String(), Type.Null()]) }),
          }),
        },
      },
      onRequest: findsWorkspace,
    },
    async (request) => {
      const { displayId } = request.params;
      const display = await findDisplay(db, displayId);
      if (display === null || display.workspaceId !== workspaceOf(request).id) {
        throw notFound('Display', displayId);
      }
      return { data: { responseId: await findResponseIdOfDisplay(db, display.id) } };
    },
  );
};
