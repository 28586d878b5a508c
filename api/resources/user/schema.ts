/** The bodies and replies of routes about users. */
import { type Static, Type } from 'typebox';
import { USER_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { MapOf, Nullable } from '#api/values/schemas.ts';

const GivenAttributes = MapOf(Type.Union([Type.String(), Type.Number(), Type.Boolean()]));

export const UserBody = Type.Object({
  userId: Type.String({
    minLength: 1,
    maxLength: USER_ID_LENGTH_MAX,
    text: `User ID cannot exceed ${USER_ID_LENGTH_MAX} characters`,
  }),
  attributes: Type.Optional(Nullable(GivenAttributes)),
});
export type UserBody = Static<typeof UserBody>;

export const AttributesBody = Type.Object({ attributes: GivenAttributes });

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

export const UserReply = Type.Object({
  data: Type.Object({
    state: Type.Object({
      data: Type.Object({ ...state, language: Type.Optional(Type.String()) }),
      expiresAt: Type.String(),
    }),
    messages: Type.Optional(Type.Array(Type.String())),
    errors: Type.Optional(Type.Array(Type.String())),
  }),
});

export const IdentifiedReply = Type.Object({ data: Type.Object(state) });

export const AttributesReply = Type.Object({
  data: Type.Object({
    changed: Type.Boolean(),
    message: Type.String(),
    messages: Type.Optional(Type.Array(Type.String())),
  }),
});
