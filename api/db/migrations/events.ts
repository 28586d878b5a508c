/** Events for webhooks, uploaded files, mails, and jobs. Partial indexes have only what is to be done, so they stay small. */
import {
  key,
  number,
  numberFromZero,
  optionalNumber,
  optionalText,
  ownedBy,
  referring,
  row,
  runningNumber,
  type SchemaWriter,
  text,
} from './schema-writer.ts';

/** The state of a row in a queue, see db/queue.ts. */
const queue = {
  status: text,
  attemptCount: number,
  failureCount: number,
  dueAt: optionalText,
  lease: optionalText,
};

export async function createEvents(write: SchemaWriter): Promise<void> {
  await write.table('webhooks', {
    ...row,
    workspaceId: ownedBy('workspaces'),
    name: optionalText,
    url: text,
    source: text,
    triggers: text,
    surveyIds: text,
    secret: text,
    isQuick: numberFromZero,
    hangs: numberFromZero,
    pausedUntil: optionalText,
  });
  await write.index('webhooks', 'list', ['workspaceId', 'createdAt', 'id']);
  // No reference to the response or the survey, because an event may outlive them.
  await write.table('events', {
    id: key,
    createdAt: text,
    workspaceId: ownedBy('workspaces'),
    surveyId: text,
    responseId: text,
    type: text,
    payload: text,
    mailsDueAt: optionalText,
  });
  await write.index('events', 'mails', ['mailsDueAt'], ['mailsDueAt', 'is not', null]);
  await write.index('events', 'age', ['createdAt']);
  await write.index('events', 'workspaceId', ['workspaceId']);
  await write.index('events', 'responseId', ['responseId']);
  await write.table('deliveries', {
    ...row,
    ...queue,
    eventId: ownedBy('events'),
    webhookId: ownedBy('webhooks'),
  });
  await write.index('deliveries', 'due', ['webhookId', 'dueAt'], ['dueAt', 'is not', null]);
  await write.index('deliveries', 'leased', ['dueAt'], ['lease', 'is not', null]);
  await write.index('deliveries', 'list', ['webhookId', 'createdAt', 'id']);
  await write.index('deliveries', 'eventId', ['eventId']);
  await write.table(
    'deliveryAttempts',
    {
      deliveryId: ownedBy('deliveries'),
      number,
      startedAt: text,
      durationMs: number,
      statusCode: optionalNumber,
      reply: optionalText,
      error: optionalText,
      isPrivate: numberFromZero,
    },
    { primary: ['deliveryId', 'number'] },
  );
}

/** Uploaded files, one row for each granted key. No references, because a row stays until the object is deleted. */
export async function createFiles(write: SchemaWriter): Promise<void> {
  await write.table('files', {
    key,
    workspaceId: text,
    access: text,
    surveyId: optionalText,
    responseId: optionalText,
    size: optionalNumber,
    createdAt: text,
    storedAt: optionalText,
    countedBytes: numberFromZero,
    claimedAt: optionalText,
    removedAt: optionalText,
  });
  await write.index('files', 'workspaceId', ['workspaceId', 'createdAt']);
  await write.index('files', 'surveyId', ['surveyId', 'createdAt'], ['surveyId', 'is not', null]);
  await write.index('files', 'responseId', ['responseId', 'createdAt'], ['responseId', 'is not', null]);
  await write.index('files', 'unsettled', ['createdAt', 'key'], ['storedAt', 'is', null]);
  await write.index('files', 'unclaimed', ['createdAt', 'key'], ['claimedAt', 'is', null]);
  await write.index('files', 'removed', ['createdAt', 'key'], ['removedAt', 'is not', null]);
  await write.table('storageUsage', { workspaceId: key, bytes: number });
  await write.run([`insert into "storageUsage" ("workspaceId", "bytes") values ('', 0)`]);
}

export async function createMailsAndJobs(write: SchemaWriter): Promise<void> {
  await write.table('mailOutbox', {
    ...row,
    ...queue,
    kind: text,
    recipient: text,
    replyTo: optionalText,
    subject: text,
    body: text,
    lastError: optionalText,
    workspaceId: referring(optionalText, 'workspaces', 'cascade'),
  });
  await write.index('mailOutbox', 'due', ['dueAt'], ['dueAt', 'is not', null]);
  await write.index('mailOutbox', 'createdAt', ['createdAt']);
  await write.index('mailOutbox', 'recipient', ['recipient', 'kind', 'createdAt']);
  await write.index('mailOutbox', 'workspaceId', ['workspaceId'], ['workspaceId', 'is not', null]);
  await write.table('scheduledJobs', { name: key, dueAt: text });
  await write.table('stateChanges', { id: runningNumber, workspaceId: text, environmentId: text });
  await write.table('probes', { name: key, at: text });
}
