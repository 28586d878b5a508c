/** A webhook as v1 and v2 return it. The serializer leaves the secret out. Pure. */
import type { Webhook } from './store.ts';

export function toWebhookReply({
  triggers,
  surveyIds,
  ...webhook
}: Webhook & { readonly environmentId: string }) {
  return { ...webhook, triggers: [...triggers], surveyIds: [...surveyIds] };
}
