/**
 * Schemas that the description shows under a name. Some routes serialise parts of a reply unchanged, or read a body by
 * hand. Their content is described here, with the schemas that check it when it is written.
 */
import { type TSchema, Type } from 'typebox';
import { ActionClassBody, ActionClassReply } from '#api/resources/action-classes/routes.ts';
import { PersonReply } from '#api/resources/contacts/routes.ts';
import { State } from '#api/resources/environment/schema.ts';
import {
  Answer,
  NewClientResponse,
  NewManagementResponse,
  ResponseChange,
  ResponseMeta,
  ResponseReply,
  ResponseReplyWithNotes,
  V2ResponseChange,
  V2ResponseReply,
} from '#api/resources/responses/schema.ts';
import { SegmentReply } from '#api/resources/segments/routes.ts';
import { AnyNewSurvey, AnySurveyChange } from '#api/resources/surveys/routes.ts';
import {
  NewSurvey,
  Question,
  SurveyChange,
  SurveyReply,
  shownSurvey,
} from '#api/resources/surveys/schema.ts';
import {
  NewWebhook,
  NewWebhookReply,
  V2WebhookChange,
  WebhookReply,
} from '#api/resources/webhooks/routes.ts';
import { Localized, MapOf, Nullable } from '#api/values/schemas.ts';
import { errorBodies } from './error-bodies.ts';

const Segment = Type.Object({
  ...SegmentReply.properties,
  filters: Type.Array(Type.Unknown()),
  surveys: Type.Array(Type.String()),
});

const Survey = Type.Object({ ...shownSurvey, segment: Nullable(Segment) });

const v2ResponseParts = {
  data: MapOf(Answer),
  variables: MapOf(Type.Union([Type.String(), Type.Number()])),
  ttc: MapOf(Type.Number()),
  meta: ResponseMeta,
  contactAttributes: Nullable(MapOf(Type.String())),
};

const responseParts = {
  ...v2ResponseParts,
  person: Nullable(PersonReply),
  personAttributes: Nullable(MapOf(Type.String())),
  contact: Nullable(Type.Object({ id: Type.String(), userId: Type.Optional(Type.String()) })),
};

const NotedResponse = Type.Object({ ...ResponseReplyWithNotes.properties, ...responseParts });
const ResponseWithoutNotes = Type.Object({ ...ResponseReply.properties, ...responseParts });
const V2Response = Type.Object({ ...V2ResponseReply.properties, ...v2ResponseParts });

/** The schemas by their names in the description. */
export const namedSchemas: Readonly<Record<string, TSchema>> = {
  Survey,
  NewSurvey,
  SurveyChange,
  Question,
  LocalizedText: Localized,
  Response: NotedResponse,
  ResponseWithoutNotes,
  V2Response,
  V2ResponseChange,
  NewClientResponse,
  NewResponse: NewManagementResponse,
  ResponseChange,
  WorkspaceState: State,
  ActionClass: ActionClassReply,
  ActionClassBody,
  Webhook: WebhookReply,
  WebhookWithSecret: NewWebhookReply,
  NewWebhook,
  V2WebhookChange,
  ...errorBodies,
};

/** The schemas of routes that the description shows with more detail. */
const serialized: Readonly<Record<string, TSchema>> = {
  Survey: SurveyReply,
  NewSurvey: AnyNewSurvey,
  SurveyChange: AnySurveyChange,
  Response: ResponseReplyWithNotes,
  ResponseWithoutNotes: ResponseReply,
  V2Response: V2ResponseReply,
};

/** The name of a schema. */
export const nameOf: ReadonlyMap<unknown, string> = new Map(
  [namedSchemas, serialized].flatMap((schemas) =>
    Object.entries(schemas).map(([name, schema]) => [schema, name] as const),
  ),
);
