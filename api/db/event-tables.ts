/** Webhooks, the outbox of events, and their deliveries (see events/outbox.ts for the words). */
import type { Flag, Json, Row, Timestamp } from './columns.ts';

export interface WebhookTable extends Row {
  workspaceId: string;
  name: string | null;
  url: string;
  source: string;
  triggers: Json;
  surveyIds: Json;
  secret: string | null;
}

export type EventType = 'responseCreated' | 'responseUpdated' | 'responseFinished';

/** The outbox, and what was in it (see events/outbox.ts for the words). */
export interface EventTable {
  id: string;
  createdAt: Timestamp;
  workspaceId: string;
  surveyId: string;
  responseId: string;
  type: EventType;
  /** What the change left behind; null once the payload is made of it. */
  snapshot: Json | null;
  /** What every webhook is told; null until fan-out. */
  payload: Json | null;
  /** null: still to be fanned out. */
  fannedOutAt: Timestamp | null;
}

export interface DeliveryTable {
  /** Travels as `webhook-id`. */
  id: string;
  createdAt: Timestamp;
  updatedAt: Timestamp;
  eventId: string;
  webhookId: string;
  status: 'pending' | 'delivered' | 'parked';
  /** All attempts ever begun. */
  attemptCount: number;
  /** Failures since it was made or asked for again; an attempt counts from its lease on, and is taken off if it succeeds. */
  failureCount: number;
  /** When to try next or, while leased, when the lease runs out; null unless pending. */
  dueAt: Timestamp | null;
  /** Names the lease under which a worker is at it; null: nobody is. */
  lease: string | null;
}

export interface DeliveryAttemptTable {
  deliveryId: string;
  /** Counts from 1. */
  number: number;
  startedAt: Timestamp;
  durationMs: number;
  /** null: no answer. */
  statusCode: number | null;
  /** The first KiB of the answer. */
  reply: string | null;
  error: string | null;
  /** The receiver is none of the public internet's: what it answered is not shown. */
  isPrivate: Flag;
}
