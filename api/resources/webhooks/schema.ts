/** The fields of a webhook. */
import { Type } from 'typebox';
import { Id, Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';

const triggers = ['responseCreated', 'responseUpdated', 'responseFinished'] as const;
const sources = ['user', 'zapier', 'make', 'n8n', 'activepieces'] as const;

const SURVEYS_MAX = 500;

const url = Type.String({ minLength: 1 });
const triggerList = Type.Array(OneOf(triggers), { minItems: 1, maxItems: 100 });
const name = Nullable(Type.String({ maxLength: 255 }));
const source = OneOf(sources);
const surveyIds = Type.Array(Id, { maxItems: SURVEYS_MAX });

export const NewWebhook = Type.Object({
  ...scopeFields,
  url,
  triggers: triggerList,
  name: Type.Optional(name),
  source: Type.Optional(source),
  surveyIds: Type.Optional(Nullable(surveyIds)),
});

const v2Fields = { name, url, source, triggers: triggerList, surveyIds };
export const NewV2Webhook = Type.Object({ ...scopeFields, ...v2Fields });
/** Absent fields are not changed. The workspace cannot change. */
export const V2WebhookChange = Type.Partial(Type.Object(v2Fields));

const shown = {
  ...rowFields,
  name: Nullable(Type.String()),
  url: Type.String(),
  source: Type.String(),
  surveyIds: Type.Array(Type.String()),
  triggers: Type.Array(Type.String()),
};
export const WebhookReply = Type.Object(shown);
/** The only reply that shows the secret. */
export const NewWebhookReply = Type.Object({ ...shown, secret: Type.String() });
