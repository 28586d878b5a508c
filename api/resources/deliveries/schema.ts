/** A delivery with its attempts, as the management API shows it. */
import { type Static, Type } from 'typebox';
import { Nullable } from '#api/schemas.ts';

const Attempt = Type.Object({
  /** The number of the attempt, from 1. The newest twenty are kept. */
  number: Type.Integer(),
  startedAt: Type.String(),
  durationMs: Type.Integer(),
  /** Status of the reply. null if there was no reply, and `error` says why; or if it is hidden. */
  statusCode: Nullable(Type.Integer()),
  /** The first KiB of the reply's body; `hidden` if the receiver is in a private network. */
  reply: Nullable(Type.String()),
  error: Nullable(Type.String()),
});

export const DeliveryReply = Type.Object({
  /** The `webhook-id` that the receiver gets. */
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  webhookId: Type.String(),
  event: Type.String(),
  surveyId: Type.String(),
  responseId: Type.String(),
  /** `pending`, `delivered`, or `parked`: there are no further attempts until a redelivery is requested. */
  status: Type.String(),
  attemptCount: Type.Integer(),
  /** Time of the next attempt; null unless pending. */
  nextAttemptAt: Nullable(Type.String()),
  /** Attempts, oldest first. */
  attempts: Type.Array(Attempt),
});
export type DeliveryReply = Static<typeof DeliveryReply>;

export const TestReply = Type.Object({
  isDelivered: Type.Boolean(),
  statusCode: Nullable(Type.Integer()),
  durationMs: Type.Integer(),
  reply: Nullable(Type.String()),
  error: Nullable(Type.String()),
});

const HIDDEN = 'hidden';

/**
 * Returns the part of a reply that callers may see. Replies of private receivers are hidden, so that nobody can explore
 * the network.
 */
export function shown({
  statusCode,
  reply,
  error,
  isPrivate,
}: {
  readonly statusCode: number | null;
  readonly reply: string | null;
  readonly error: string | null;
  readonly isPrivate: boolean;
}): Pick<Static<typeof TestReply>, 'statusCode' | 'reply' | 'error'> {
  return isPrivate ? { statusCode: null, reply: HIDDEN, error: null } : { statusCode, reply, error };
}
