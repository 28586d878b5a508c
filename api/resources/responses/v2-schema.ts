/** The shapes of responses on v2. */
import { type Static, Type } from 'typebox';
import { Id, Nullable } from '#api/schemas.ts';
import { Data, FullMeta, OptionalText, TextOrNull, Ttc, Variables } from './schema.ts';

export const NewV2Response = Type.Object({
  surveyId: Id,
  finished: Type.Boolean(),
  data: Data,
  displayId: OptionalText,
  singleUseId: OptionalText,
  endingId: OptionalText,
  language: OptionalText,
  variables: Type.Optional(Nullable(Variables)),
  ttc: Type.Optional(Nullable(Ttc)),
  meta: Type.Optional(Nullable(FullMeta)),
  userId: OptionalText,
  createdAt: OptionalText,
  updatedAt: OptionalText,
});
export type NewV2Response = Static<typeof NewV2Response>;

/** Absent fields stay as they are. Other fields of a response are allowed and ignored. */
export const V2ResponseChange = Type.Object({
  finished: Type.Optional(Type.Boolean()),
  data: Type.Optional(Data),
  endingId: OptionalText,
  language: OptionalText,
  variables: Type.Optional(Nullable(Variables)),
  ttc: Type.Optional(Nullable(Ttc)),
  meta: Type.Optional(Nullable(FullMeta)),
});

export const V2ResponseReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  finished: Type.Boolean(),
  surveyId: Type.String(),
  contactId: TextOrNull,
  endingId: TextOrNull,
  data: Type.Unknown(),
  variables: Type.Unknown(),
  ttc: Type.Unknown(),
  meta: Type.Unknown(),
  contactAttributes: Type.Unknown(),
  singleUseId: TextOrNull,
  language: TextOrNull,
  displayId: TextOrNull,
});
