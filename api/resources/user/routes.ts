/**
 * Returns the state of a user to its SDK: the segments, and the surveys that were seen and answered. v1 and v2 are the
 * same.
 *
 * Callers: anybody.
 */
import type { FastifyRequest } from 'fastify';
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest } from '#api/errors.ts';
import { createSegmentCache } from '#api/resources/segments/compiled.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { isId } from '#api/values/ids.ts';
import { isRecord } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { checkEmail, identify } from './identify.ts';
import { UserBody, UserReply } from './schema.ts';
import { deviceOf, readUserState } from './state.ts';

/** SDKs request the state again after this time. */
const STATE_LIFETIME: Millis = 30 * 60 * 1000;

export const userRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const segments = createSegmentCache(context.states);
  const loadWorkspace = loadPathWorkspace(context);

  for (const version of ['v1', 'v2'] as const) {
    app.post(
      `/api/${version}/client/:workspaceId/user`,
      {
        schema: {
          summary: 'Identify a user, set attributes, read the state of the user',
          params: Type.Object({ workspaceId: Type.String() }),
          body: UserBody,
          response: { 200: UserReply },
        },
        attachValidation: true,
        onRequest: [rejectMalformedId, loadWorkspace],
      },
      async (request) => {
        refuseInvalid(request);
        const { userId } = request.body;
        const given = request.body.attributes ?? {};
        checkEmail(given);
        const { errors, messages, ...user } = await identify(context, workspaceOf(request).id, userId, given);
        const now = clock();
        const state = await readUserState(
          { db, segments },
          { ...user, userId, device: deviceOf(request.headers['user-agent'] ?? '') },
          now,
        );
        return {
          data: {
            state: { data: state, expiresAt: toTimestamp(now + STATE_LIFETIME) },
            ...(messages.length === 0 ? {} : { messages }),
            ...(errors.length === 0 ? {} : { errors }),
          },
        };
      },
    );
  }
};

async function rejectMalformedId(request: FastifyRequest): Promise<void> {
  const id = isRecord(request.params) ? String(request.params.workspaceId) : '';
  if (!isId(id)) throw badRequest('Invalid workspace ID format');
}

/** Refuses an invalid body. A missing user id has its own message. Other errors name their field. */
function refuseInvalid({ body, validationError }: FastifyRequest): void {
  if (validationError === undefined) return;
  const userId = isRecord(body) ? body.userId : undefined;
  if (typeof userId !== 'string' || userId === '') {
    throw badRequest('userId is required and must be a string');
  }
  throw validationError;
}
