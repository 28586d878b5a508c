/** What a webhook is made of. */
import { Type } from 'typebox';
import { Id, Nullable, OneOf } from '#api/schemas.ts';

export const triggers = ['responseCreated', 'responseUpdated', 'responseFinished'] as const;
export const sources = ['user', 'zapier', 'make', 'n8n', 'activepieces'] as const;

const SURVEYS_MAX = 500;

export const NewWebhook = Type.Object({
  url: Type.String({ minLength: 1 }),
  triggers: Type.Array(OneOf(triggers), { minItems: 1, maxItems: 100 }),
  name: Type.Optional(Nullable(Type.String({ maxLength: 255 }))),
  source: Type.Optional(OneOf(sources)),
  surveyIds: Type.Optional(Nullable(Type.Array(Id, { maxItems: SURVEYS_MAX }))),
});

const shown = {
  id: Type.String(),
  environmentId: Type.String(),
  workspaceId: Type.String(),
  name: Nullable(Type.String()),
  url: Type.String(),
  source: Type.String(),
  surveyIds: Type.Array(Type.String()),
  triggers: Type.Array(Type.String()),
  createdAt: Type.String(),
  updatedAt: Type.String(),
};
export const WebhookReply = Type.Object(shown);
/** The only reply that ever shows the secret. */
export const NewWebhookReply = Type.Object({ ...shown, secret: Type.String() });
