/**
 * Returns the state of a user to its SDK: the segments, and the surveys that were seen and answered. v1 and v2 are the
 * same. SDKs before version 5 and the npm package `@formbricks/api` 3 have routes of their own.
 *
 * Callers: anybody.
 */
import { type Static, Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { badRequest } from '#api/errors.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { USER_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { MapOf, Nullable } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Millis } from '#shared/clock.ts';
import { changeContact, identify } from './identify.ts';
import { deviceOf, readUserState } from './state.ts';

/** SDKs request the state again after this time. */
const STATE_LIFETIME: Millis = 30 * 60 * 1000;

const GivenAttributes = MapOf(Type.Union([Type.String(), Type.Number(), Type.Boolean()]));
const UserId = Type.String({
  minLength: 1,
  maxLength: USER_ID_LENGTH_MAX,
  text: `User ID must have 1 to ${USER_ID_LENGTH_MAX} characters`,
});
const UserBody = Type.Object({ userId: UserId, attributes: Type.Optional(Nullable(GivenAttributes)) });
const Params = Type.Object({ workspaceId: Type.String(), userId: UserId });

const state = {
  contactId: Type.String(),
  userId: Type.String(),
  /** Ids of the user's segments. SDKs show only surveys whose segment is in this list. */
  segments: Type.Array(Type.String()),
  /** Displays, newest first, like the survey ids of the responses. */
  displays: Type.Array(Type.Object({ surveyId: Type.String(), createdAt: Type.String() })),
  responses: Type.Array(Type.String()),
  lastDisplayAt: Nullable(Type.String()),
};
const Texts = Type.Optional(Type.Array(Type.String()));
const UserReply = Type.Object({
  data: Type.Object({
    state: Type.Object({
      data: Type.Object({ ...state, language: Type.Optional(Type.String()) }),
      expiresAt: Type.String(),
    }),
    messages: Texts,
    errors: Texts,
  }),
});
const IdentifiedReply = Type.Object({ data: Type.Object(state) });
const AttributesReply = Type.Object({
  data: Type.Object({ changed: Type.Boolean(), message: Type.String(), messages: Texts }),
});

export const userRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const onRequest = loadPathWorkspace(context);

  for (const version of ['v1', 'v2']) {
    app.post(
      `/api/${version}/client/:workspaceId/user`,
      {
        schema: {
          summary: 'Identify a user, set attributes, read the state of the user',
          params: Type.Object({ workspaceId: Type.String() }),
          body: UserBody,
          response: { 200: UserReply },
        },
        onRequest,
      },
      async (request) => {
        const { userId } = request.body;
        const given = request.body.attributes ?? {};
        checkEmail(given);
        const user = await identify(context, workspaceOf(request).id, userId, given);
        const now = clock();
        const device = deviceOf(request.headers['user-agent'] ?? '');
        const data = await readUserState(db, { ...user, userId, device }, now);
        return {
          data: {
            state: { data, expiresAt: toTimestamp(now + STATE_LIFETIME) },
            ...(user.messages.length === 0 ? {} : { messages: user.messages }),
            ...(user.errors.length === 0 ? {} : { errors: user.errors }),
          },
        };
      },
    );
  }
};

export const legacyUserRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const base = '/api/v1/client/:workspaceId';
  const onRequest = loadPathWorkspace(context);

  for (const name of ['contacts', 'people']) {
    app.put(
      `${base}/${name}/:userId/attributes`,
      {
        schema: {
          summary: 'Set attributes of a contact (older SDKs)',
          params: Params,
          body: Type.Object({ attributes: GivenAttributes }),
          response: { 200: AttributesReply },
        },
        onRequest,
      },
      async (request) => {
        const { attributes } = request.body;
        checkEmail(attributes);
        const { id } = workspaceOf(request);
        const { userId } = request.params;
        const { isChanged, errors } = await changeContact(context, id, userId, attributes, false);
        const message = isChanged ? 'The attributes were updated' : 'There was nothing to update';
        return {
          data: { changed: isChanged, message, ...(errors.length === 0 ? {} : { messages: errors }) },
        };
      },
    );
  }

  /** Creates the contact if there is none, because old SDKs introduce their user this way. */
  for (const name of ['identify/contacts', 'identify/people', 'app/people']) {
    app.get(
      `${base}/${name}/:userId`,
      {
        schema: {
          summary: 'Read the state of a user (older SDKs)',
          params: Params,
          response: { 200: IdentifiedReply },
        },
        onRequest,
      },
      async (request) => {
        const { userId } = request.params;
        const user = await identify(context, workspaceOf(request).id, userId, {});
        const device = deviceOf(request.headers['user-agent'] ?? '');
        return { data: await readUserState(db, { ...user, userId, device }, clock()) };
      },
    );
  }
};

/** An address has an @ and three characters. Only a mail could prove more. @throws ApiError bad_request */
function checkEmail(given: Static<typeof GivenAttributes>): void {
  if (!Object.hasOwn(given, 'email')) return;
  const { email } = given;
  if (typeof email !== 'string' || email.length < 3 || !email.includes('@'))
    throw badRequest('Invalid email format');
}
