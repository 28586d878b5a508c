/** Events for webhooks, uploaded files, mails, and jobs. Partial indexes have only what is to be done, so they stay small. */
import {
  flagFromZero,
  having,
  type Indexes,
  index,
  key,
  number,
  numberFromZero,
  oneOf,
  optionalNumber,
  optionalText,
  ownedBy,
  referring,
  row,
  text,
  unique,
  without,
} from './schema-writer.ts';

export type EventType = 'responseCreated' | 'responseUpdated' | 'responseFinished';

/** The state of a row in a queue, see db/queue.ts. */
const queue = {
  attemptCount: number,
  /** Failures since it was created or requested again. An attempt counts from its lease on, until it succeeds. */
  failureCount: number,
  /** Time of the next attempt or, while leased, end of the lease; null unless pending. */
  dueAt: optionalText,
  /** Id of the lease; null if not leased. */
  lease: optionalText,
};

export const events = {
  webhooks: {
    ...row,
    workspaceId: ownedBy('workspaces'),
    name: optionalText,
    url: text,
    /** The integration that created it. */
    source: text,
    triggers: text,
    /** Ids of the surveys; empty for all surveys. */
    surveyIds: text,
    /** `whsec_` and 32 bytes in base64. */
    secret: text,
    /** Whether the last answer came soon. */
    isQuick: flagFromZero,
    /** Number of attempts in a row without any answer. */
    hangs: numberFromZero,
    /** Time until which nothing is sent, because the receiver hangs. */
    pausedUntil: optionalText,
  },
  /** Events, including delivered ones. They have no reference to the response or the survey, because they may outlive them. */
  events: {
    id: key,
    createdAt: text,
    workspaceId: ownedBy('workspaces'),
    surveyId: text,
    responseId: text,
    type: oneOf<EventType>(),
    /** The body, which is the same for all webhooks. */
    payload: text,
    /** Not null: the follow-up mails are still to be made, oldest first. */
    mailsDueAt: optionalText,
  },
  deliveries: {
    /** The id is sent as `webhook-id`. */
    ...row,
    ...queue,
    status: oneOf<'pending' | 'delivered' | 'parked'>(),
    eventId: ownedBy('events'),
    webhookId: ownedBy('webhooks'),
  },
  deliveryAttempts: {
    deliveryId: ownedBy('deliveries'),
    number,
    startedAt: text,
    durationMs: number,
    /** Status of the reply; null without a reply. */
    statusCode: optionalNumber,
    /** The first KiB of the reply. */
    reply: optionalText,
    error: optionalText,
  },
  /** Files with an upload grant. No references, because a row stays until its object is deleted. */
  files: {
    /** `{workspaceId}/{access}/{name}`, see storage/key.ts. */
    key,
    workspaceId: text,
    access: oneOf<'public' | 'private'>(),
    surveyId: optionalText,
    /** First response that contains it as an answer. The file is deleted with it. */
    responseId: optionalText,
    /** Size in bytes; null until the upload is known. */
    size: optionalNumber,
    createdAt: text,
    /** Time at which an answer or a survey first referred to the file. Unclaimed files are deleted after a day. */
    claimedAt: optionalText,
    /** Time of deletion. The row stays until its object is deleted. */
    removedAt: optionalText,
  },
  mailOutbox: {
    ...row,
    ...queue,
    kind: text,
    recipient: text,
    replyTo: optionalText,
    subject: text,
    /** Plain text. Cleared after sending, because it may contain the token of a link. */
    body: text,
    status: oneOf<'pending' | 'sent' | 'parked'>(),
    lastError: optionalText,
    /** The workspace that the mail is about; null for mails of accounts. */
    workspaceId: referring(optionalText, 'workspaces', 'cascade'),
  },
  /** Rows that health checks write to find out whether writing works. */
  probes: { name: key, at: text },
};

export const indexesOfEvents: Indexes = {
  webhooks: [index('list', 'workspaceId', 'createdAt', 'id')],
  events: [
    having('mailsDueAt', index('mails', 'mailsDueAt')),
    index('age', 'createdAt'),
    index('workspaceId'),
    index('responseId'),
  ],
  deliveries: [
    having('dueAt', index('due', 'webhookId', 'dueAt')),
    having('lease', index('leased', 'dueAt')),
    index('list', 'webhookId', 'createdAt', 'id'),
    index('eventId'),
  ],
  deliveryAttempts: [unique('deliveryId', 'number')],
  files: [
    without('removedAt', index('used', 'workspaceId', 'size')),
    having('surveyId', index('surveyId')),
    having('responseId', index('responseId')),
    without('size', index('unknown', 'createdAt')),
    without('claimedAt', index('unclaimed', 'createdAt')),
    having('removedAt', index('removed', 'createdAt')),
  ],
  mailOutbox: [
    having('dueAt', index('due', 'dueAt')),
    index('createdAt'),
    index('recipient', 'recipient', 'kind', 'createdAt'),
    having('workspaceId', index('workspaceId')),
  ],
};
