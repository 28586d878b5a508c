/** Tables of webhooks, events and deliveries (terms: events/outbox.ts). */
import type { Generated } from 'kysely';
import type { Flag, Json, Row, Timestamp } from './columns.ts';

/** The columns of a queue, see db/queue.ts. */
export interface QueueColumns {
  id: string;
  updatedAt: Timestamp;
  status: string;
  attemptCount: number;
  /** Failures since it was created or requested again. An attempt counts from its lease on, until it succeeds. */
  failureCount: number;
  /** Time of the next attempt or, while leased, end of the lease; null unless pending. */
  dueAt: Timestamp | null;
  /** Id of the lease; null if not leased. */
  lease: string | null;
}

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
  /** Whether the last answer came soon. */
  isQuick: Generated<Flag>;
  /** Number of attempts in a row without any answer. */
  hangs: Generated<number>;
  /** Time until which nothing is sent, because the receiver hangs. */
  pausedUntil: Generated<Timestamp | null>;
}

export type EventType = 'responseCreated' | 'responseUpdated' | 'responseFinished';

/** Events, including delivered ones. */
export interface EventTable {
  id: string;
  createdAt: Timestamp;
  workspaceId: string;
  surveyId: string;
  responseId: string;
  type: EventType;
  /** The body, which is the same for all webhooks. */
  payload: Json;
  /** Not null: the follow-up mails are still to be made, oldest first. */
  mailsDueAt: Timestamp | null;
}

export interface DeliveryTable extends QueueColumns {
  /** Sent as `webhook-id`. */
  id: string;
  createdAt: Timestamp;
  eventId: string;
  webhookId: string;
  status: 'pending' | 'delivered' | 'parked';
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
