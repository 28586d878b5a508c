/** Tables of webhooks, events and deliveries (terms: events/outbox.ts). */
import type { Flag, Json, Row, Timestamp } from './columns.ts';

export interface WebhookTable extends Row {
  workspaceId: string;
  name: string | null;
  url: string;
  /** The integration that created it. */
  source: string;
  triggers: Json;
  /** Ids of the surveys; empty for all surveys. */
  surveyIds: Json;
  /** `whsec_` and 32 bytes in base64. */
  secret: string;
}

export type EventType = 'responseCreated' | 'responseUpdated' | 'responseFinished';

/** Events of the outbox, including delivered ones. */
export interface EventTable {
  id: string;
  createdAt: Timestamp;
  workspaceId: string;
  surveyId: string;
  responseId: string;
  type: EventType;
  /** The response after the change; null once the payload is built from it. */
  snapshot: Json | null;
  /** The body, which is the same for all webhooks; null until fan-out. */
  payload: Json | null;
  fannedOutAt: Timestamp | null;
}

export interface DeliveryTable {
  /** Sent as `webhook-id`. */
  id: string;
  createdAt: Timestamp;
  updatedAt: Timestamp;
  eventId: string;
  webhookId: string;
  status: 'pending' | 'delivered' | 'parked';
  attemptCount: number;
  /** Failures since it was created or requested again. An attempt counts from its lease on, until it succeeds. */
  failureCount: number;
  /** Time of the next attempt or, while leased, end of the lease; null unless pending. */
  dueAt: Timestamp | null;
  /** Id of the worker's lease; null if not leased. */
  lease: string | null;
}

export interface DeliveryAttemptTable {
  deliveryId: string;
  number: number;
  startedAt: Timestamp;
  durationMs: number;
  /** Status of the reply; null without a reply. */
  statusCode: number | null;
  /** The first KiB of the reply. */
  reply: string | null;
  error: string | null;
  /** The receiver is not on the public internet, so its reply is not shown to users. */
  isPrivate: Flag;
}
