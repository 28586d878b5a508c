/**
 * Displays on the client API: a survey was shown. The routes that link them to responses are in
 * responses/display-routes.ts.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { notFound } from '#api/errors.ts';
import { findContact, findOrCreateContact } from '#api/resources/contacts/store.ts';
import { findAnsweredSurvey, findSurveyNow, surveyClosed } from '#api/resources/surveys/answered.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { newId } from '#api/values/ids.ts';
import { Id, Nullable, UserId } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { type Display, insertDisplay } from './store.ts';

const NewDisplayV1 = Type.Object({ surveyId: Id, userId: UserId });
const NewDisplayV2 = Type.Object({ surveyId: Id, contactId: Type.Optional(Nullable(Type.String())) });
const Created = Type.Object({
  data: Type.Object({
    id: Type.String(),
    contactId: Type.Union([Type.String(), Type.Null()]),
    surveyId: Type.String(),
  }),
});

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });

const refuses = ['not_found', 'forbidden'] as const;

export const clientDisplayRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const loadWorkspace = loadPathWorkspace(context);

  app.post(
    '/api/v1/client/:workspaceId/displays',
    {
      schema: { params: WorkspaceParams, body: NewDisplayV1, response: { 200: Created } },
      config: { refuses },
      onRequest: loadWorkspace,
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
      onRequest: loadWorkspace,
      config: { refuses, malformedJsonMessage: 'Invalid JSON in request body' },
    },
    async (request) => {
      const { id: workspaceId } = workspaceOf(request);
      const { surveyId, contactId } = request.body;
      return create(workspaceId, surveyId, async (trx) =>
        // An unknown contact does not prevent the display.
        contactId ? ((await findContact(trx, workspaceId, contactId))?.id ?? null) : null,
      );
    },
  );

  async function create(
    workspaceId: string,
    surveyId: string,
    contactIdIn: (trx: Database, now: Timestamp) => Promise<string | null>,
  ) {
    const survey = await findAnsweredSurvey(db, surveyId);
    if (survey === null || survey.workspaceId !== workspaceId) throw notFound('Survey', surveyId);
    const now = toTimestamp(clock());
    const display = await db.transaction().execute(async (trx): Promise<Display> => {
      // Inside the transaction, because the survey may have ended or been deleted since the request arrived.
      if ((await findSurveyNow(trx, surveyId, clock()))?.isOpen !== true) throw surveyClosed(surveyId);
      const contactId = await contactIdIn(trx, now);
      const made = { id: newId(random), surveyId, workspaceId, contactId, createdAt: now, updatedAt: now };
      await insertDisplay(trx, made);
      return made;
    });
    return { data: { id: display.id, contactId: display.contactId, surveyId } };
  }
};
