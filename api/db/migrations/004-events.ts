/**
 * Events for webhooks, and dates at which surveys start and end.
 *
 * Partial indexes contain only what is still to be done, so they stay small.
 */
export const events: readonly string[] = [
  // No reference to the response or the survey, because an event may outlive them.
  `create table "events" (
    "id" text primary key,
    "createdAt" text not null,
    "workspaceId" text not null references "workspaces" ("id") on delete cascade,
    "surveyId" text not null,
    "responseId" text not null,
    "type" text not null,
    "snapshot" text,
    "payload" text,
    "fannedOutAt" text
  )`,
  `create index "events_outbox" on "events" ("createdAt", "id") where "fannedOutAt" is null`,
  `create index "events_age" on "events" ("createdAt")`,
  `create index "events_workspaceId" on "events" ("workspaceId")`,

  `create table "deliveries" (
    "id" text primary key,
    "createdAt" text not null,
    "updatedAt" text not null,
    "eventId" text not null references "events" ("id") on delete cascade,
    "webhookId" text not null references "webhooks" ("id") on delete cascade,
    "status" text not null,
    "attemptCount" integer not null,
    "failureCount" integer not null,
    "dueAt" text,
    "lease" text
  )`,
  `create index "deliveries_due" on "deliveries" ("webhookId", "dueAt") where "dueAt" is not null`,
  `create index "deliveries_list" on "deliveries" ("webhookId", "createdAt", "id")`,
  `create index "deliveries_eventId" on "deliveries" ("eventId")`,

  `create table "deliveryAttempts" (
    "deliveryId" text not null references "deliveries" ("id") on delete cascade,
    "number" integer not null,
    "startedAt" text not null,
    "durationMs" integer not null,
    "statusCode" integer,
    "reply" text,
    "error" text,
    primary key ("deliveryId", "number")
  )`,

  `alter table "surveys" add column "publishOn" text`,
  `alter table "surveys" add column "closeOn" text`,
  `create index "surveys_publishOn" on "surveys" ("status", "publishOn")`,
  `create index "surveys_closeOn" on "surveys" ("status", "closeOn")`,
];
