/**
 * Links displays to responses, on the client API.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { badRequest, notFound } from '#api/errors.ts';
import { findOrCreateContact } from '#api/resources/contacts/store.ts';
import { type Display, findDisplay, setDisplayContact } from '#api/resources/displays/store.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { Nullable, UserId } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { findResponse, findResponseIdOfDisplay, setResponseDisplay } from './store.ts';

const Link = Type.Object({ responseId: Type.Optional(Nullable(Type.String())), userId: UserId });
const DisplayParams = Type.Object({ workspaceId: Type.String(), displayId: Type.String() });

export const displayLinkRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const loadWorkspace = loadPathWorkspace(context);

  /** Links a display to a response or a user. */
  app.put(
    '/api/v1/client/:workspaceId/displays/:displayId',
    {
      schema: {
        params: DisplayParams,
        body: Link,
        response: { 200: Type.Object({ data: Type.Object({}) }) },
      },
      config: { refuses: ['bad_request', 'not_found'] },
      onRequest: loadWorkspace,
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
          await lockRow(trx, 'contacts', contact.id, 'keep');
          if (!(await setDisplayContact(trx, display.id, contact.id, now)))
            throw notFound('Display', displayId);
        }
        if (responseId) await link(trx, display, responseId, now);
      });
      return { data: {} };
    },
  );

  /**
   * Links a display and a response. A display has at most one response, and a response one display. Repeating the
   * request changes nothing.
   */
  async function link(trx: Database, display: Display, responseId: string, now: Timestamp): Promise<void> {
    await lockRow(trx, 'displays', display.id, 'keep');
    if ((await findDisplay(trx, display.id)) === null) throw notFound('Display', display.id);
    await lockRow(trx, 'responses', responseId);
    const response = await findResponse(trx, responseId);
    if (response === null || response.surveyId !== display.surveyId) {
      throw badRequest('The response does not belong to the survey of this display', { responseId });
    }
    if (response.displayId === display.id) return;
    if (response.displayId !== null) {
      throw badRequest('The response is linked to another display', { responseId });
    }
    const taken = badRequest('The display is linked to another response', { responseId });
    await unlessTaken(['responses.displayId'], taken, () =>
      setResponseDisplay(trx, response.id, display.id, now),
    );
  }

  /** Returns the response of a display. SDKs request it after an interrupted submission. */
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
      onRequest: loadWorkspace,
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
