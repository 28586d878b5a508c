/** The shapes of responses in requests and replies. */
import { type Static, Type } from 'typebox';
import { Id, MapOf, Nullable, rowFields, scopeFields, TextOrNull } from '#api/values/schemas.ts';

export const Answer = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Array(Type.String()),
  MapOf(Type.String()),
]);
export type Answer = Static<typeof Answer>;
export type Answers = Readonly<Record<string, Answer>>;

const Data = MapOf(Answer);
const Variables = MapOf(Type.Union([Type.String(), Type.Number()]));
/** Milliseconds by question id. */
const Ttc = MapOf(Type.Number());
const OptionalText = Type.Optional(Nullable(Type.String()));

const UserAgent = Type.Object({
  browser: OptionalText,
  os: OptionalText,
  device: OptionalText,
});

const ClientMeta = Type.Object({ source: OptionalText, url: OptionalText, action: OptionalText });
const FullMeta = Type.Object({
  source: OptionalText,
  url: OptionalText,
  action: OptionalText,
  userAgent: Type.Optional(Nullable(UserAgent)),
  country: OptionalText,
  ipAddress: OptionalText,
});

/** Circumstances of a response. */
export interface ResponseMeta {
  readonly source?: string;
  readonly url?: string;
  readonly action?: string;
  readonly userAgent?: { readonly browser?: string; readonly os?: string; readonly device?: string };
  readonly country?: string;
  readonly ipAddress?: string;
}

const created = {
  surveyId: Id,
  finished: Type.Boolean(),
  data: Data,
  /** '' and null both mean that there is no id. If '' were an id, the second response with it would be refused. */
  displayId: OptionalText,
  singleUseId: OptionalText,
  endingId: OptionalText,
  language: OptionalText,
  variables: Type.Optional(Nullable(Variables)),
  ttc: Type.Optional(Nullable(Ttc)),
};

export const NewClientResponse = Type.Object({
  ...created,
  userId: OptionalText,
  contactId: OptionalText,
  pinAuthToken: OptionalText,
  recaptchaToken: OptionalText,
  meta: Type.Optional(Nullable(ClientMeta)),
});
export type NewClientResponse = Static<typeof NewClientResponse>;

/**
 * `data` is open, because it may contain `language` and `ttc`. They are taken out, and the rest is checked against
 * `Answers`.
 */
const OpenData = MapOf(Type.Unknown());

export const NewManagementResponse = Type.Object({
  ...scopeFields,
  ...created,
  data: OpenData,
  userId: OptionalText,
  meta: Type.Optional(Nullable(FullMeta)),
  createdAt: OptionalText,
  updatedAt: OptionalText,
});
export type NewManagementResponse = Static<typeof NewManagementResponse>;

export const NewV2Response = Type.Object({
  ...created,
  meta: Type.Optional(Nullable(FullMeta)),
  userId: OptionalText,
  createdAt: OptionalText,
  updatedAt: OptionalText,
});

export const ResponseChange = Type.Object({
  finished: Type.Optional(Type.Boolean()),
  data: Type.Optional(Nullable(OpenData)),
  ttc: Type.Optional(Nullable(Ttc)),
  variables: Type.Optional(Nullable(Variables)),
  endingId: OptionalText,
  language: OptionalText,
  pinAuthToken: OptionalText,
});
export type ResponseChange = Static<typeof ResponseChange>;

/** Absent fields are not changed. Other fields of a response are allowed and ignored. */
export const V2ResponseChange = Type.Object({
  finished: Type.Optional(Type.Boolean()),
  data: Type.Optional(Data),
  endingId: OptionalText,
  language: OptionalText,
  variables: Type.Optional(Nullable(Variables)),
  ttc: Type.Optional(Nullable(Ttc)),
  meta: Type.Optional(Nullable(FullMeta)),
});

const TagReply = Type.Object({
  ...rowFields,
  name: Type.String(),
});

/** All fields that old and new clients expect. */
const reply = {
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  surveyId: Type.String(),
  finished: Type.Boolean(),
  endingId: TextOrNull,
  displayId: TextOrNull,
  data: Type.Unknown(),
  variables: Type.Unknown(),
  ttc: Type.Unknown(),
  meta: Type.Unknown(),
  person: Type.Unknown(),
  personAttributes: Type.Unknown(),
  contact: Type.Unknown(),
  contactAttributes: Type.Unknown(),
  singleUseId: TextOrNull,
  language: TextOrNull,
  tags: Type.Array(TagReply),
};
/** The reply to updates and deletions, which has no notes. */
export const ResponseReply = Type.Object(reply);
export const ResponseReplyWithNotes = Type.Object({ ...reply, notes: Type.Array(Type.Unknown()) });

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

/** `quotaFull` is always false, because there are no quotas. SDKs read the field. */
export const ClientResponseReply = Type.Object({
  data: Type.Object({ id: Type.String(), quotaFull: Type.Boolean() }),
});
