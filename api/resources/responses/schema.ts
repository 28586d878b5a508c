/** The shapes of responses on their way in and out. */
import { type Static, Type } from 'typebox';
import { Id, MapOf, Nullable, scopeFields } from '#api/schemas.ts';

/** What may answer a question. */
export const Answer = Type.Union([
  Type.String(),
  Type.Number(),
  Type.Array(Type.String()),
  MapOf(Type.String()),
]);
export type Answer = Static<typeof Answer>;
export type Answers = Readonly<Record<string, Answer>>;

export const Data = MapOf(Answer);
export const Variables = MapOf(Type.Union([Type.String(), Type.Number()]));
/** Milliseconds by question id. */
export const Ttc = MapOf(Type.Number());
export const OptionalText = Type.Optional(Nullable(Type.String()));

const UserAgent = Type.Object({
  browser: OptionalText,
  os: OptionalText,
  device: OptionalText,
});

const ClientMeta = Type.Object({ source: OptionalText, url: OptionalText, action: OptionalText });
export const FullMeta = Type.Object({
  source: OptionalText,
  url: OptionalText,
  action: OptionalText,
  userAgent: Type.Optional(Nullable(UserAgent)),
  country: OptionalText,
  ipAddress: OptionalText,
});

/** What is kept about how a response came to be. */
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
 * `data` is open where `language` and `ttc` may hide in it; what is left after they are
 * extracted out is held to `Answers`.
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

export const TextOrNull = Type.Unsafe<string | null>({ type: ['string', 'null'] });

export const TagReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  name: Type.String(),
  workspaceId: Type.String(),
  environmentId: Type.String(),
});

export const NoteReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  text: Type.String(),
  user: Nullable(Type.Object({ id: Type.String(), name: Type.String() })),
  isResolved: Type.Boolean(),
  isEdited: Type.Boolean(),
});

/** The union of what old and new readers expect. */
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
/** Of updates and deletions: notes are absent there. */
export const ResponseReply = Type.Object(reply);
export const ResponseReplyWithNotes = Type.Object({ ...reply, notes: Type.Array(NoteReply) });

/** `quotaFull` is always false: there are no quotas here, and SDKs read the field. */
export const ClientResponseReply = Type.Object({
  data: Type.Object({ id: Type.String(), quotaFull: Type.Boolean() }),
});
