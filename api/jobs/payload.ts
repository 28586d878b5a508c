/**
 * What a webhook receives: the union of what its consumers read, old and new. Pure.
 *
 * All deliveries of an event share one text; only the webhook's id in front differs. The text is kept with the event,
 * so that every attempt sends the same bytes.
 */
import type { EventType } from '#api/db/schema.ts';
import type { SurveySnapshot } from '#api/resources/responses/record-events.ts';
import { toResponseReplyWithNotes } from '#api/resources/responses/reply.ts';
import type { ResponseWithRelations } from '#api/resources/responses/store.ts';

/** @returns a JSON object: what all webhooks of the event are told. The webhook's own id is added by events/deliver.ts. */
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
