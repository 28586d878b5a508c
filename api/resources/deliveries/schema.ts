/** A delivery with its attempts, as the management API shows it. */
import { type Static, Type } from 'typebox';
import { Nullable } from '#api/schemas.ts';

const Attempt = Type.Object({
  /** Counts from 1. The newest twenty are kept. */
  number: Type.Integer(),
  startedAt: Type.String(),
  durationMs: Type.Integer(),
  /** null: there was no answer, and `error` says why; or it is hidden. */
  statusCode: Nullable(Type.Integer()),
  /** The first KiB of the answer's body; `hidden` when the receiver is in a private network. */
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
  /** `pending`, `delivered`, or `parked`: not tried again until somebody asks for it. */
  status: Type.String(),
  attemptCount: Type.Integer(),
  /** null unless pending. */
  nextAttemptAt: Nullable(Type.String()),
  /** The oldest first. */
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
 * The part of an answer that callers may see. Answers of private receivers are hidden, so that nobody explores the
 * network.
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
