/**
 * What a webhook receives (contract webhooks-and-events.md §3): the union of what its consumers read, old and new. Pure.
 *
 * All deliveries of an event share one text; only the webhook's id in front differs. The text is kept with the event, so
 * that every attempt sends the same bytes.
 */
import type { EventType } from '#api/db/schema.ts';
import type { SurveySnapshot } from '#api/events/outbox.ts';
import { toResponseReplyWithNotes } from '#api/resources/responses/reply.ts';
import type { ResponseWithRelations } from '#api/resources/responses/store.ts';

/** @returns a JSON object: what all webhooks of the event are told */
export function payloadOf(event: {
  readonly type: EventType;
  readonly response: ResponseWithRelations;
  readonly survey: SurveySnapshot;
  readonly publicUrl: string;
}): string {
  const { type, response, survey, publicUrl } = event;
  return JSON.stringify({
    event: type,
    data: { ...toResponseReplyWithNotes(response, publicUrl), survey },
  });
}

/** @param payload as `payloadOf` made it @returns the body for one webhook */
export function bodyOf(webhookId: string, payload: string): string {
  return `{"webhookId":${JSON.stringify(webhookId)},${payload.slice(1)}`;
}
