/** A delivery as the management API shows it, with its attempts. The original product has no such route. */
import { type Static, Type } from 'typebox';
import { Nullable } from '#api/schemas.ts';

const Attempt = Type.Object({
  /** Counts from 1; the newest twenty are kept. */
  number: Type.Integer(),
  startedAt: Type.String(),
  durationMs: Type.Integer(),
  /** null: there was no answer, and `error` says why; or it is hidden. */
  statusCode: Nullable(Type.Integer()),
  /** The first KiB of the answer's body; `hidden` where the receiver is in a private network. */
  reply: Nullable(Type.String()),
  error: Nullable(Type.String()),
});

export const DeliveryReply = Type.Object({
  /** What the receiver saw as `webhook-id`. */
  id: Type.String(),
  createdAt: Type.String(),
  updatedAt: Type.String(),
  webhookId: Type.String(),
  event: Type.String(),
  surveyId: Type.String(),
  responseId: Type.String(),
  /** `pending`, `delivered`, or `parked`: given up, until it is asked for again. */
  status: Type.String(),
  attemptCount: Type.Integer(),
  /** null unless pending. */
  nextAttemptAt: Nullable(Type.String()),
  /** The oldest first. */
  attempts: Type.Array(Attempt),
});
export type DeliveryReply = Static<typeof DeliveryReply>;

/** What came of a test event. */
export const TestReply = Type.Object({
  isDelivered: Type.Boolean(),
  statusCode: Nullable(Type.Integer()),
  durationMs: Type.Integer(),
  reply: Nullable(Type.String()),
  error: Nullable(Type.String()),
});

const HIDDEN = 'hidden';

/** What those who may see the webhook learn of an answer. Of a private receiver nothing, so nobody looks around there. */
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
