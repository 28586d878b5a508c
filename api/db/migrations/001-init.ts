/**
 * All tables of the resource model. Rows are deleted with their owner: organization, workspace, survey, contact,
 * response. A row that only refers to another one, such as a response to its contact, stays.
 */

const row = `
  "id" text primary key,
  "createdAt" text not null,
  "updatedAt" text not null`;

const inWorkspace = `"workspaceId" text not null references "workspaces" ("id") on delete cascade`;

export const init: readonly string[] = [
  `create table "secrets" (
    "name" text primary key,
    "value" text not null,
    "createdAt" text not null
  )`,

  `create table "organizations" (${row},
    "name" text not null
  )`,

  `create table "users" (${row},
    "name" text not null,
    "email" text not null unique,
    "emailVerified" text,
    "passwordHash" text,
    "isActive" integer not null,
    "twoFactorEnabled" integer not null,
    "identityProvider" text not null,
    "notificationSettings" text not null,
    "locale" text not null,
    "lastLoginAt" text
  )`,

  `create table "memberships" (
    "organizationId" text not null references "organizations" ("id") on delete cascade,
    "userId" text not null references "users" ("id") on delete cascade,
    "role" text not null,
    "createdAt" text not null,
    primary key ("organizationId", "userId")
  )`,
  `create index "memberships_userId" on "memberships" ("userId")`,

  `create table "workspaces" (${row},
    "organizationId" text not null references "organizations" ("id") on delete cascade,
    "name" text not null,
    "legacyEnvironmentId" text unique,
    "appSetupCompleted" integer not null,
    "websiteSetupCompleted" integer not null,
    "recontactDays" integer not null,
    "clickOutsideClose" integer not null,
    "overlay" text not null,
    "placement" text not null,
    "inAppSurveyBranding" integer not null,
    "styling" text not null
  )`,
  `create index "workspaces_organizationId" on "workspaces" ("organizationId")`,

  `create table "apiKeys" (
    "id" text primary key,
    "organizationId" text not null references "organizations" ("id") on delete cascade,
    "label" text not null,
    "hashedKey" text not null unique,
    "organizationRead" integer not null,
    "organizationWrite" integer not null,
    "createdBy" text references "users" ("id") on delete set null,
    "createdAt" text not null,
    "lastUsedAt" text
  )`,
  `create index "apiKeys_organizationId" on "apiKeys" ("organizationId")`,
  `create index "apiKeys_createdBy" on "apiKeys" ("createdBy")`,

  `create table "apiKeyPermissions" (
    "apiKeyId" text not null references "apiKeys" ("id") on delete cascade,
    ${inWorkspace},
    "permission" text not null,
    primary key ("apiKeyId", "workspaceId")
  )`,
  `create index "apiKeyPermissions_workspaceId" on "apiKeyPermissions" ("workspaceId")`,

  `create table "languages" (${row},
    ${inWorkspace},
    "code" text not null,
    "alias" text,
    unique ("workspaceId", "code")
  )`,

  `create table "actionClasses" (${row},
    ${inWorkspace},
    "name" text not null,
    "description" text,
    "type" text not null,
    "key" text,
    "noCodeConfig" text,
    unique ("workspaceId", "name"),
    unique ("workspaceId", "key")
  )`,
  `create index "actionClasses_list" on "actionClasses" ("workspaceId", "createdAt", "id")`,

  `create table "segments" (${row},
    ${inWorkspace},
    "title" text not null,
    "description" text,
    "isPrivate" integer not null,
    "filters" text not null,
    unique ("workspaceId", "title")
  )`,

  `create table "surveys" (${row},
    ${inWorkspace},
    "name" text not null,
    "type" text not null,
    "status" text not null,
    "createdBy" text,
    "slug" text unique,
    "segmentId" text references "segments" ("id") on delete set null,
    "archivedAt" text,
    "document" text not null
  )`,
  `create index "surveys_list" on "surveys" ("workspaceId", "updatedAt", "id")`,
  `create index "surveys_live" on "surveys" ("workspaceId", "status", "createdAt", "id")`,
  `create index "surveys_segmentId" on "surveys" ("segmentId")`,

  `create table "surveyTriggers" (
    "surveyId" text not null references "surveys" ("id") on delete cascade,
    "actionClassId" text not null references "actionClasses" ("id") on delete cascade,
    "position" integer not null,
    primary key ("surveyId", "actionClassId")
  )`,
  `create index "surveyTriggers_actionClassId" on "surveyTriggers" ("actionClassId")`,

  `create table "surveyLanguages" (
    "surveyId" text not null references "surveys" ("id") on delete cascade,
    "languageId" text not null references "languages" ("id") on delete cascade,
    "isDefault" integer not null,
    "isEnabled" integer not null,
    "position" integer not null,
    primary key ("surveyId", "languageId")
  )`,
  `create index "surveyLanguages_languageId" on "surveyLanguages" ("languageId")`,

  `create table "contacts" (${row},
    ${inWorkspace},
    "userId" text,
    unique ("workspaceId", "userId")
  )`,
  `create index "contacts_list" on "contacts" ("workspaceId", "createdAt", "id")`,

  `create table "contactAttributeKeys" (${row},
    ${inWorkspace},
    "key" text not null,
    "name" text not null,
    "description" text not null,
    "isUnique" integer not null,
    "type" text not null,
    "dataType" text not null,
    "isArchived" integer not null,
    unique ("workspaceId", "key")
  )`,

  `create table "contactAttributes" (${row},
    "contactId" text not null references "contacts" ("id") on delete cascade,
    "attributeKeyId" text not null references "contactAttributeKeys" ("id") on delete cascade,
    "value" text not null,
    unique ("contactId", "attributeKeyId")
  )`,
  `create index "contactAttributes_value" on "contactAttributes" ("attributeKeyId", "value")`,

  `create table "displays" (${row},
    "surveyId" text not null references "surveys" ("id") on delete cascade,
    "contactId" text references "contacts" ("id") on delete cascade
  )`,
  `create index "displays_surveyId" on "displays" ("surveyId", "createdAt")`,
  `create index "displays_contactId" on "displays" ("contactId", "createdAt")`,

  `create table "responses" (${row},
    ${inWorkspace},
    "surveyId" text not null references "surveys" ("id") on delete cascade,
    "contactId" text references "contacts" ("id") on delete set null,
    "displayId" text unique references "displays" ("id") on delete set null,
    "endingId" text,
    "finished" integer not null,
    "data" text not null,
    "variables" text not null,
    "ttc" text not null,
    "meta" text not null,
    "contactAttributes" text,
    "singleUseId" text,
    "language" text,
    unique ("surveyId", "singleUseId")
  )`,
  `create index "responses_workspace" on "responses" ("workspaceId", "createdAt", "id")`,
  `create index "responses_survey" on "responses" ("surveyId", "createdAt", "id")`,
  `create index "responses_finished" on "responses" ("surveyId", "finished")`,
  `create index "responses_contactId" on "responses" ("contactId", "createdAt")`,

  `create table "tags" (${row},
    ${inWorkspace},
    "name" text not null,
    unique ("workspaceId", "name")
  )`,

  `create table "responseTags" (
    "responseId" text not null references "responses" ("id") on delete cascade,
    "tagId" text not null references "tags" ("id") on delete cascade,
    primary key ("responseId", "tagId")
  )`,
  `create index "responseTags_tagId" on "responseTags" ("tagId")`,

  `create table "responseNotes" (${row},
    "responseId" text not null references "responses" ("id") on delete cascade,
    "userId" text references "users" ("id") on delete set null,
    "text" text not null,
    "isResolved" integer not null,
    "isEdited" integer not null
  )`,
  `create index "responseNotes_responseId" on "responseNotes" ("responseId", "createdAt")`,
  `create index "responseNotes_userId" on "responseNotes" ("userId")`,

  `create table "webhooks" (${row},
    ${inWorkspace},
    "name" text,
    "url" text not null,
    "source" text not null,
    "triggers" text not null,
    "surveyIds" text not null,
    "secret" text
  )`,
  `create index "webhooks_list" on "webhooks" ("workspaceId", "createdAt", "id")`,
];
