/**
 * The tables as types. Timestamps are text (see timestamps.ts), JSON is text, booleans are 0 or 1, so that SQLite and
 * PostgreSQL hold the same bytes; stores translate at this boundary and nobody else sees the encoding.
 */
import type { Permission } from '#api/auth/principal.ts';

export type Flag = 0 | 1;
/** JSON as text. */
export type Json = string;
/** ISO 8601, UTC, three decimals. */
export type Timestamp = string;

interface Row {
  id: string;
  createdAt: Timestamp;
  updatedAt: Timestamp;
}

export interface Database {
  secrets: SecretTable;
  organizations: OrganizationTable;
  users: UserTable;
  memberships: MembershipTable;
  workspaces: WorkspaceTable;
  apiKeys: ApiKeyTable;
  apiKeyPermissions: ApiKeyPermissionTable;
  languages: LanguageTable;
  actionClasses: ActionClassTable;
  segments: SegmentTable;
  surveys: SurveyTable;
  surveyTriggers: SurveyTriggerTable;
  surveyLanguages: SurveyLanguageTable;
  contacts: ContactTable;
  contactAttributeKeys: ContactAttributeKeyTable;
  contactAttributes: ContactAttributeTable;
  displays: DisplayTable;
  responses: ResponseTable;
  tags: TagTable;
  responseTags: ResponseTagTable;
  responseNotes: ResponseNoteTable;
  webhooks: WebhookTable;
  files: FileTable;
  events: EventTable;
  deliveries: DeliveryTable;
  deliveryAttempts: DeliveryAttemptTable;
  sessions: SessionTable;
  accountTokens: AccountTokenTable;
  mailOutbox: MailOutboxTable;
  auditEvents: AuditEventTable;
}

/** Keys that the service made for itself, once; what they sign stays valid over restarts. */
export interface SecretTable {
  name: string;
  /** base64url */
  value: string;
  createdAt: Timestamp;
}

export interface SessionTable {
  /** hex SHA-256 of what the cookie carries */
  hashedToken: string;
  userId: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

/** A link that was mailed and serves once. */
export interface AccountTokenTable {
  /** hex SHA-256 of what the link carries */
  hashedToken: string;
  userId: string;
  purpose: 'verifyEmail' | 'resetPassword' | 'changeEmail';
  /** Where the link was sent. */
  email: string;
  createdAt: Timestamp;
  expiresAt: Timestamp;
}

export interface MailOutboxTable {
  id: string;
  createdAt: Timestamp;
  /** What the mail is for, e.g. `verifyEmail`; said in the log. */
  kind: string;
  recipient: string;
  replyTo: string | null;
  subject: string;
  /** Plain text; '' once it is sent, as it may carry the token of a link. */
  body: string;
  status: 'pending' | 'sent' | 'parked';
  /** Attempts begun. */
  attempts: number;
  /** While an attempt runs: when somebody else may try, should it never end. */
  nextAttemptAt: Timestamp;
  /** When it was sent or parked. */
  settledAt: Timestamp | null;
  lastError: string | null;
}

/** Only ever inserted into. */
export interface AuditEventTable {
  id: string;
  timestamp: Timestamp;
  action: string;
  actorId: string;
  actorType: 'user' | 'api' | 'system';
  targetId: string;
  targetType: string;
  status: 'success' | 'failure';
  organizationId: string | null;
  ipAddress: string;
  /** The request's id. */
  eventId: string;
  changes: Json;
}

export interface OrganizationTable extends Row {
  name: string;
}

export interface UserTable extends Row {
  name: string;
  /** lower case */
  email: string;
  emailVerified: Timestamp | null;
  passwordHash: string | null;
  isActive: Flag;
  twoFactorEnabled: Flag;
  identityProvider: string;
  notificationSettings: Json;
  locale: string;
  lastLoginAt: Timestamp | null;
}

export interface MembershipTable {
  organizationId: string;
  userId: string;
  role: 'owner' | 'manager' | 'member';
  createdAt: Timestamp;
}

export interface WorkspaceTable extends Row {
  organizationId: string;
  name: string;
  /** The id under which old clients know the workspace; null when it never had one. */
  legacyEnvironmentId: string | null;
  appSetupCompleted: Flag;
  websiteSetupCompleted: Flag;
  recontactDays: number;
  clickOutsideClose: Flag;
  overlay: string;
  placement: string;
  inAppSurveyBranding: Flag;
  styling: Json;
}

export interface ApiKeyTable {
  id: string;
  organizationId: string;
  label: string;
  /** hex SHA-256 of the key */
  hashedKey: string;
  organizationRead: Flag;
  organizationWrite: Flag;
  createdBy: string | null;
  createdAt: Timestamp;
  lastUsedAt: Timestamp | null;
}

export interface ApiKeyPermissionTable {
  apiKeyId: string;
  workspaceId: string;
  permission: Permission;
}

export interface LanguageTable extends Row {
  workspaceId: string;
  code: string;
  alias: string | null;
}

export interface ActionClassTable extends Row {
  workspaceId: string;
  name: string;
  description: string | null;
  type: 'code' | 'noCode' | 'automatic';
  key: string | null;
  noCodeConfig: Json | null;
}

export interface SegmentTable extends Row {
  workspaceId: string;
  title: string;
  description: string | null;
  /** A private segment belongs to one survey and goes with it. */
  isPrivate: Flag;
  filters: Json;
}

export interface SurveyTable extends Row {
  workspaceId: string;
  name: string;
  type: 'app' | 'website' | 'link';
  status: 'draft' | 'scheduled' | 'inProgress' | 'paused' | 'completed';
  createdBy: string | null;
  slug: string | null;
  segmentId: string | null;
  archivedAt: Timestamp | null;
  /** As in the document; here for those who look for dates that have come. */
  publishOn: Timestamp | null;
  closeOn: Timestamp | null;
  /** Everything that is read and written as a whole: blocks, endings, styling and the settings. */
  document: Json;
}

export interface SurveyTriggerTable {
  surveyId: string;
  actionClassId: string;
  position: number;
}

export interface SurveyLanguageTable {
  surveyId: string;
  languageId: string;
  isDefault: Flag;
  isEnabled: Flag;
  position: number;
}

export interface ContactTable extends Row {
  workspaceId: string;
  /** null: known, but not identified. */
  userId: string | null;
}

export interface ContactAttributeKeyTable extends Row {
  workspaceId: string;
  key: string;
  name: string;
  description: string;
  isUnique: Flag;
  type: 'default' | 'custom';
  dataType: 'string' | 'number' | 'date';
  /** Only attribute classes, the older view on the same rows, can be archived. */
  isArchived: Flag;
}

export interface ContactAttributeTable extends Row {
  contactId: string;
  attributeKeyId: string;
  value: string;
}

export interface DisplayTable extends Row {
  surveyId: string;
  contactId: string | null;
}

export interface ResponseTable extends Row {
  /** That of the survey, repeated here so that the list of a workspace reads one index. */
  workspaceId: string;
  surveyId: string;
  contactId: string | null;
  displayId: string | null;
  endingId: string | null;
  finished: Flag;
  data: Json;
  variables: Json;
  ttc: Json;
  meta: Json;
  /** The contact's attributes as they were when the response was made. */
  contactAttributes: Json | null;
  singleUseId: string | null;
  language: string | null;
}

export interface TagTable extends Row {
  workspaceId: string;
  name: string;
}

export interface ResponseTagTable {
  responseId: string;
  tagId: string;
}

export interface ResponseNoteTable extends Row {
  responseId: string;
  userId: string | null;
  text: string;
  isResolved: Flag;
  isEdited: Flag;
}

/** A file that was granted an upload. The row goes after the object it stands for. */
export interface FileTable {
  /** `{workspaceId}/{access}/{name}`, see storage/key.ts. */
  key: string;
  workspaceId: string;
  access: 'public' | 'private';
  /** The survey it was uploaded for. */
  surveyId: string | null;
  /** The first response that named it as an answer: the file goes with it. */
  responseId: string | null;
  /** Bytes; null until we know that it is there. */
  size: number | null;
  createdAt: Timestamp;
  /** When we learnt that it is there. */
  storedAt: Timestamp | null;
}

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
  /** All attempts ever made. */
  attemptCount: number;
  /** Failures since it was made or asked for again. */
  failureCount: number;
  /** When to try next or, while leased, when the lease runs out; null unless pending. */
  dueAt: Timestamp | null;
  /** Names the worker's turn that is at it; null: nobody is. */
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
}
