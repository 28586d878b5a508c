/** The shapes of responses in requests and replies. */
import { type Static, Type } from 'typebox';
import { RESPONSE_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { Id, MapOf, Nullable, type ReplyOf, scopeFields, TextOrNull } from '#api/values/schemas.ts';

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
/** Ids and codes. */
const OptionalId = Type.Optional(Nullable(Type.String({ maxLength: RESPONSE_ID_LENGTH_MAX })));

const UserAgent = Type.Object({
  browser: OptionalText,
  os: OptionalText,
  device: OptionalText,
});

const ClientMeta = Type.Object({ source: OptionalText, url: OptionalText, action: OptionalText });
const FullMeta = Type.Object({
  ...ClientMeta.properties,
  userAgent: Type.Optional(Nullable(UserAgent)),
  country: OptionalText,
  ipAddress: OptionalText,
});

const Text = Type.String();
/** Circumstances of a response. */
export const ResponseMeta = Type.Partial(
  Type.Object({
    source: Text,
    url: Text,
    action: Text,
    userAgent: Type.Partial(Type.Object({ browser: Text, os: Text, device: Text })),
    country: Text,
    ipAddress: Text,
  }),
);
export type ResponseMeta = ReplyOf<typeof ResponseMeta>;

const answered = {
  endingId: OptionalId,
  language: OptionalId,
  variables: Type.Optional(Nullable(Variables)),
  ttc: Type.Optional(Nullable(Ttc)),
};
const created = {
  ...answered,
  surveyId: Id,
  finished: Type.Boolean(),
  data: Data,
  /** '' and null both mean that there is no id. If '' were an id, the second response with it would be refused. */
  displayId: OptionalId,
  singleUseId: OptionalId,
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

/** `data` is open, because it may contain `language` and `ttc`. answers.ts takes them out and checks the rest. */
const OpenData = MapOf(Type.Unknown());

export const NewManagementResponse = Type.Object({
  ...scopeFields,
  ...created,
  data: OpenData,
  meta: Type.Optional(Nullable(FullMeta)),
  userId: OptionalText,
  createdAt: OptionalText,
  updatedAt: OptionalText,
});
export type NewManagementResponse = Static<typeof NewManagementResponse>;

export const ResponseChange = Type.Object({
  ...answered,
  finished: Type.Optional(Type.Boolean()),
  data: Type.Optional(Nullable(OpenData)),
  pinAuthToken: OptionalText,
});
export type ResponseChange = Static<typeof ResponseChange>;

/** Other fields of a response are allowed and ignored, so a client may send back what it has read. */
export const V2ResponseChange = Type.Object({
  ...ResponseChange.properties,
  meta: Type.Optional(Nullable(FullMeta)),
});

const shown = {
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
  contactAttributes: Type.Unknown(),
  singleUseId: TextOrNull,
  language: TextOrNull,
};
/** All fields that old and new clients of v1 expect. Nothing writes tags or notes. */
const reply = {
  ...shown,
  person: Type.Unknown(),
  personAttributes: Type.Unknown(),
  contact: Type.Unknown(),
  tags: Type.Array(Type.Unknown()),
};
/** The reply to updates and deletions, which has no notes. */
export const ResponseReply = Type.Object(reply);
export const ResponseReplyWithNotes = Type.Object({ ...reply, notes: Type.Array(Type.Unknown()) });

export const V2ResponseReply = Type.Object({ ...shown, contactId: TextOrNull });

/** `quotaFull` is always false, because there are no quotas. SDKs read the field. */
export const ClientResponseReply = Type.Object({
  data: Type.Object({ id: Type.String(), quotaFull: Type.Boolean() }),
});
