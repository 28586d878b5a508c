/** The tables as types: workspaces and what surveys, contacts and responses are made of; the others stand in files of their own. */
import type { Generated } from 'kysely';
import type {
  AccountTokenTable,
  ApiKeyPermissionTable,
  ApiKeyTable,
  AuditEventTable,
  MailOutboxTable,
  MembershipTable,
  OrganizationTable,
  SecretTable,
  SessionTable,
  UserTable,
} from './account-tables.ts';
import type { Flag, Json, Row, Timestamp } from './columns.ts';
import type { DeliveryAttemptTable, DeliveryTable, EventTable, WebhookTable } from './event-tables.ts';
import type { InviteTable, TeamMemberTable, TeamTable, TeamWorkspaceTable } from './people-tables.ts';

export type * from './account-tables.ts';
export type { Flag, Json, Timestamp } from './columns.ts';
export type * from './event-tables.ts';
export type * from './people-tables.ts';

export interface Database {
  secrets: SecretTable;
  organizations: OrganizationTable;
  users: UserTable;
  memberships: MembershipTable;
  invites: InviteTable;
  teams: TeamTable;
  teamMembers: TeamMemberTable;
  teamWorkspaces: TeamWorkspaceTable;
  workspaces: WorkspaceTable;
  apiKeys: ApiKeyTable;
  apiKeyPermissions: ApiKeyPermissionTable;
  languages: LanguageTable;
  actionClasses: ActionClassTable;
  segments: SegmentTable;
  surveys: SurveyTable;
  surveyTriggers: SurveyTriggerTable;
  surveyLanguages: SurveyLanguageTable;
  countdowns: CountdownTable;
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
  storageUsage: StorageUsageTable;
  events: EventTable;
  deliveries: DeliveryTable;
  deliveryAttempts: DeliveryAttemptTable;
  sessions: SessionTable;
  accountTokens: AccountTokenTable;
  mailOutbox: MailOutboxTable;
  auditEvents: AuditEventTable;
  probes: ProbeTable;
  stateChanges: StateChangeTable;
  scheduledJobs: ScheduledJobTable;
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

interface SurveyTriggerTable {
  surveyId: string;
  actionClassId: string;
  position: number;
}

interface SurveyLanguageTable {
  surveyId: string;
  languageId: string;
  isDefault: Flag;
  isEnabled: Flag;
  position: number;
}

/** Of a survey that ends after a number of finished responses, see resources/responses/completion.ts. */
interface CountdownTable {
  surveyId: string;
  /** The number that ends it, when they were counted. */
  autoComplete: number;
  /** So many more of them need no count. */
  skips: number;
}

interface ContactTable extends Row {
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

interface ContactAttributeTable extends Row {
  contactId: string;
  attributeKeyId: string;
  value: string;
  /** Of a key whose values are unique: of the value that no other contact gets. Otherwise null. */
  uniqueDigest: string | null;
}

interface DisplayTable extends Row {
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
  /** Who wrote it, where a survey takes one finished response of each verified address. */
  emailDigest: string | null;
}

interface TagTable extends Row {
  workspaceId: string;
  name: string;
}

interface ResponseTagTable {
  responseId: string;
  tagId: string;
}

interface ResponseNoteTable extends Row {
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
  /** What it takes of the quota: the largest size while it is granted, its size once it is there. */
  countedBytes: Generated<number>;
  /** When an answer or a survey named it first; a file that nobody names goes after a day. */
  claimedAt: Timestamp | null;
  /** When it was deleted. The row stays until no upload under its grant can be under way any more. */
  removedAt: Timestamp | null;
}

/** The sum of `countedBytes`. */
interface StorageUsageTable {
  /** '' for all of them together. */
  workspaceId: string;
  bytes: number;
}

/** What is written to find out whether something can be written. */
interface ProbeTable {
  name: string;
  at: Timestamp;
}

/** A change of a workspace's state. Triggers write the rows and keep the newest thousand. */
interface StateChangeTable {
  /** In the order of the commits, without gaps. */
  id: Generated<number>;
  workspaceId: string;
  environmentId: string;
}

interface ScheduledJobTable {
  name: string;
  /** When it may start: after its period, or when the lease of the process that runs it expires. */
  dueAt: Timestamp;
  /** Of the process that runs it. */
  lease: string | null;
}
