/**
 * Schemas that the description shows under a name. Some routes serialise parts of a reply unchanged, or read a body by
 * hand. Their content is described here, with the schemas that check it when it is written.
 */
import { type TSchema, Type } from 'typebox';
import { ActionClassBody, ActionClassReply } from '#api/resources/action-classes/schema.ts';
import { PersonReply } from '#api/resources/contacts/people-routes.ts';
import { State } from '#api/resources/environment/schema.ts';
import {
  Answer,
  NewClientResponse,
  NewManagementResponse,
  NewV2Response,
  ResponseChange,
  ResponseMeta,
  ResponseReply,
  ResponseReplyWithNotes,
  V2ResponseChange,
  V2ResponseReply,
} from '#api/resources/responses/schema.ts';
import { SegmentReply } from '#api/resources/segments/routes.ts';
import { questionShapes } from '#api/resources/surveys/question-types.ts';
import { NewSurvey, SurveyChange, SurveyLanguage } from '#api/resources/surveys/request-shapes.ts';
import { SurveyContent, SurveyReply } from '#api/resources/surveys/schema.ts';
import {
  NewV2Webhook,
  NewWebhook,
  NewWebhookReply,
  V2WebhookChange,
  WebhookReply,
} from '#api/resources/webhooks/schema.ts';
import { Localized, MapOf, Nullable } from '#api/values/schemas.ts';
import { envelopeSchemas } from './error-responses.ts';

export interface NamedShape {
  readonly name: string;
  /** The schema in the options of routes; null when routes read it by hand. */
  readonly used: TSchema | null;
  readonly shown: TSchema;
}

const { overwrites, ...content } = SurveyContent.properties;

const Question = Type.Union(Object.values(questionShapes), {
  description: 'Which fields there are besides the common ones depends on `type`.',
});

const Segment = Type.Object({
  ...SegmentReply.properties,
  filters: Type.Array(Type.Unknown()),
});

const Survey = Type.Object({
  ...SurveyReply.properties,
  ...content,
  questions: Type.Array(Question),
  languages: Type.Array(SurveyLanguage),
  triggers: Type.Array(Type.Object({ actionClass: ActionClassReply })),
  segment: Nullable(Segment),
  workspaceOverwrites: overwrites,
  projectOverwrites: overwrites,
  productOverwrites: overwrites,
});

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

export const namedShapes: readonly NamedShape[] = [
  { name: 'Survey', used: SurveyReply, shown: Survey },
  { name: 'NewSurvey', used: NewSurvey, shown: NewSurvey },
  { name: 'SurveyChange', used: SurveyChange, shown: SurveyChange },
  { name: 'Question', used: null, shown: Question },
  { name: 'LocalizedText', used: Localized, shown: Localized },
  {
    name: 'Response',
    used: ResponseReplyWithNotes,
    shown: Type.Object({ ...ResponseReplyWithNotes.properties, ...responseParts }),
  },
  {
    name: 'ResponseWithoutNotes',
    used: ResponseReply,
    shown: Type.Object({ ...ResponseReply.properties, ...responseParts }),
  },
  {
    name: 'V2Response',
    used: V2ResponseReply,
    shown: Type.Object({ ...V2ResponseReply.properties, ...v2ResponseParts }),
  },
  { name: 'NewV2Response', used: NewV2Response, shown: NewV2Response },
  { name: 'V2ResponseChange', used: V2ResponseChange, shown: V2ResponseChange },
  { name: 'NewClientResponse', used: NewClientResponse, shown: NewClientResponse },
  { name: 'NewResponse', used: NewManagementResponse, shown: NewManagementResponse },
  { name: 'ResponseChange', used: ResponseChange, shown: ResponseChange },
  { name: 'WorkspaceState', used: State, shown: State },
  { name: 'ActionClass', used: ActionClassReply, shown: ActionClassReply },
  { name: 'ActionClassBody', used: ActionClassBody, shown: ActionClassBody },
  { name: 'Webhook', used: WebhookReply, shown: WebhookReply },
  { name: 'WebhookWithSecret', used: NewWebhookReply, shown: NewWebhookReply },
  { name: 'NewWebhook', used: NewWebhook, shown: NewWebhook },
  { name: 'NewV2Webhook', used: NewV2Webhook, shown: NewV2Webhook },
  { name: 'V2WebhookChange', used: V2WebhookChange, shown: V2WebhookChange },
  ...Object.entries(envelopeSchemas).map(([name, shown]) => ({ name, used: shown, shown })),
];
