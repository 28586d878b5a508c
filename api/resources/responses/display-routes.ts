/**
 * Displays on the client API: a survey was shown, to a contact or to nobody known, and a response belongs to it.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { badRequest, notFound } from '#api/errors.ts';
import { findContact, findOrCreateContact } from '#api/resources/contacts/store.ts';
import {
  type Display,
  findDisplay,
  insertDisplay,
  setDisplayContact,
} from '#api/resources/displays/store.ts';
import { closedError, findAnsweredSurvey } from '#api/resources/surveys/answered.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { newId } from '#api/values/ids.ts';
import { Id, Nullable, TextOrNull, UserId } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { findResponse } from './store.ts';
import { throwFirst } from './submission-checks.ts';

/** v1 reads the user id, and v2 the id of the contact. */
const NewDisplay = Type.Object({
  surveyId: Id,
  userId: UserId,
  contactId: Type.Optional(Nullable(Type.String())),
});
const Created = Type.Object({
  data: Type.Object({ id: Type.String(), contactId: TextOrNull, surveyId: Type.String() }),
});
const Link = Type.Object({ responseId: Type.Optional(Nullable(Type.String())), userId: UserId });

const WorkspaceParams = Type.Object({ workspaceId: Type.String() });
const DisplayParams = Type.Object({ workspaceId: Type.String(), displayId: Type.String() });

export const newDisplayRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const loadWorkspace = loadPathWorkspace(context);

  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/displays`,
      {
        schema: { params: WorkspaceParams, body: NewDisplay, response: { 200: Created } },
        onRequest: loadWorkspace,
      },
      async (request) => {
        const { id: workspaceId } = workspaceOf(request);
        const { surveyId, userId, contactId } = request.body;
        const now = toTimestamp(clock());
        const contactOf = async (trx: Database) => {
          if (version === 'v1')
            return userId ? findOrCreateContact(trx, workspaceId, userId, now, random) : null;
          // An unknown contact does not prevent the display.
          return contactId ? findContact(trx, workspaceId, contactId) : null;
        };
        return db.transaction().execute(async (trx) => {
          const survey = await findAnsweredSurvey(trx, surveyId);
          if (survey === null || survey.workspaceId !== workspaceId) throw notFound('Survey', surveyId);
          throwFirst(() => closedError(survey, clock()));
          const contact = await contactOf(trx);
          const id = newId(random);
          const shown = { id, surveyId, contactId: contact?.id ?? null };
          await insertDisplay(trx, { ...shown, workspaceId, createdAt: now, updatedAt: now });
          return { data: shown };
        });
      },
    );
  }
};

export const displayRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const loadWorkspace = loadPathWorkspace(context);

  /** Links a display to a response or a user. */
  app.put(
    '/api/v1/client/:workspaceId/displays/:displayId',
    {
      schema: {
        summary: 'Link a display to a response or a user',
        params: DisplayParams,
        body: Link,
        response: { 200: Type.Object({ data: Type.Object({}) }) },
      },
      onRequest: loadWorkspace,
    },
    async (request) => {
      const { id: workspaceId } = workspaceOf(request);
      const { displayId } = request.params;
      const { responseId, userId } = request.body;
      const display = await displayIn(db, workspaceId, displayId);
      const now = toTimestamp(clock());
      await db.transaction().execute(async (trx) => {
        if (userId) {
          const contact = await findOrCreateContact(trx, workspaceId, userId, now, random);
          if (!(await setDisplayContact(trx, display.id, contact.id, now)))
            throw notFound('Display', displayId);
        }
        if (responseId) await link(trx, display, responseId, now);
      });
      return { data: {} };
    },
  );

  /** Returns the response of a display. SDKs request it after an interrupted submission. */
  app.get(
    '/api/v1/client/:workspaceId/displays/:displayId/response',
    {
      schema: {
        summary: 'Read the response to a display',
        params: DisplayParams,
        response: { 200: Type.Object({ data: Type.Object({ responseId: TextOrNull }) }) },
      },
      onRequest: loadWorkspace,
    },
    async (request) => {
      const { id } = await displayIn(db, workspaceOf(request).id, request.params.displayId);
      const found = await db
        .selectFrom('responses')
        .select('id')
        .where('displayId', '=', id)
        .executeTakeFirst();
      return { data: { responseId: found?.id ?? null } };
    },
  );
};

/** @throws ApiError not_found */
async function displayIn(db: Database, workspaceId: string, id: string): Promise<Display> {
  const display = await findDisplay(db, id);
  if (display?.workspaceId !== workspaceId) throw notFound('Display', id);
  return display;
}

/**
 * Links a display and a response. A display has at most one response, and a response one display. Repeating the
 * request changes nothing.
 */
async function link(trx: Database, display: Display, responseId: string, now: Timestamp): Promise<void> {
  await lockRow(trx, 'displays', display.id);
  if ((await findDisplay(trx, display.id)) === null) throw notFound('Display', display.id);
  await lockRow(trx, 'responses', responseId);
  const response = await findResponse(trx, responseId);
  if (response?.surveyId !== display.surveyId) {
    throw badRequest('The response does not belong to the survey of this display', { responseId });
  }
  if (response.displayId === display.id) return;
  const taken = badRequest('The display or the response is linked already', { responseId });
  if (response.displayId !== null) throw taken;
  await unlessTaken(['responses.displayId'], taken, async () => {
    await trx
      .updateTable('responses')
      .set({ displayId: display.id, updatedAt: now })
      .where('id', '=', response.id)
      .execute();
  });
}
