/** Table types of workspaces, surveys, contacts and responses. Other tables have files of their own. */
import type { Generated, Kysely } from 'kysely';
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

export type * from './account-tables.ts';
export type { Decoded, Flag, Json, Timestamp } from './columns.ts';
export type * from './event-tables.ts';

/** The database, or a transaction in it. */
export type Database = Kysely<Tables>;

export interface Tables {
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
  responseCounts: ResponseCountTable;
  contacts: ContactTable;
  contactAttributeKeys: ContactAttributeKeyTable;
  contactAttributes: ContactAttributeTable;
  displays: DisplayTable;
  responses: ResponseTable;
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
  /** Id of the workspace for old clients; null if it never had one. */
  legacyEnvironmentId: string | null;
  appSetupCompleted: Flag;
  websiteSetupCompleted: Flag;
  recontactDays: number;
  clickOutsideClose: Flag;
  overlay: string;
  placement: string;
  inAppSurveyBranding: Flag;
  styling: Json;
  /** Time at which its owner deleted it. No route shows it any more, and a job deletes its rows. */
  deletingAt: Timestamp | null;
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
  /** A private segment belongs to one survey and is deleted with it. */
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
  /** Copies of the document's dates, indexed for the scheduler. */
  publishOn: Timestamp | null;
  closeOn: Timestamp | null;
  /** Blocks, endings, styling and settings, which are read and written as a whole. */
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

/** Numbers of responses, which triggers keep. The numbers of a survey are the sums of its rows. */
interface ResponseCountTable {
  surveyId: string;
  /** Tells rows of a survey apart, which different connections change. */
  part: number;
  responses: number;
  finished: number;
}

export interface ContactTable extends Row {
  workspaceId: string;
  /** Id of the user in an app; null for an anonymous contact. */
  userId: string | null;
}

export interface ContactAttributeKeyTable extends Row {
  workspaceId: string;
  key: string;
  name: string;
  description: string;
  /** Whether no two contacts of the workspace may have the same value. */
  isUnique: Flag;
  /** Default keys come with the workspace, and cannot be deleted. */
  type: 'default' | 'custom';
  dataType: 'string' | 'number' | 'date';
  /** Whether the key is archived. Only attribute classes can be archived, which are the older API for the same rows. */
  isArchived: Flag;
}

export interface ContactAttributeTable extends Row {
  contactId: string;
  attributeKeyId: string;
  value: string;
  /** Digest of the value if the key's values must be unique, else null. */
  uniqueDigest: string | null;
}

export interface DisplayTable extends Row {
  surveyId: string;
  contactId: string | null;
}

export interface ResponseTable extends Row {
  /** Id of the workspace, copied from the survey, so that listing a workspace uses one index. */
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
  /** Attributes of the contact when the response was created. */
  contactAttributes: Json | null;
  singleUseId: string | null;
  language: string | null;
  /** Digest of the respondent's verified address, if the survey takes one finished response of each. */
  emailDigest: string | null;
}

/** A file with an upload grant. The row is deleted after its object. */
export interface FileTable {
  /** `{workspaceId}/{access}/{name}`, see storage/key.ts. */
  key: string;
  workspaceId: string;
  access: 'public' | 'private';
  surveyId: string | null;
  /** First response that contains it as an answer. The file is deleted with it. */
  responseId: string | null;
  /** Size in bytes; null until the upload is confirmed. */
  size: number | null;
  createdAt: Timestamp;
  /** Time when the upload was confirmed. */
  storedAt: Timestamp | null;
  /** Bytes that count against the quota: the maximum while granted, then the real size. */
  countedBytes: Generated<number>;
  /** Time at which an answer or a survey first referred to the file. Unclaimed files are deleted after a day. */
  claimedAt: Timestamp | null;
  /** Time of deletion. The row stays until no upload with its grant can be running. */
  removedAt: Timestamp | null;
}

interface StorageUsageTable {
  /** Workspace of the sum; empty for the sum of all workspaces. */
  workspaceId: string;
  bytes: number;
}

/** Row that health checks write to find out whether writing works. */
interface ProbeTable {
  name: string;
  at: Timestamp;
}

/** A change of a workspace's state. Triggers write the rows and keep the newest thousand. */
interface StateChangeTable {
  /** Number of the change, in the order of the commits, without gaps. */
  id: Generated<number>;
  workspaceId: string;
  environmentId: string;
}

interface ScheduledJobTable {
  name: string;
  /** Time from which the job may start. The process that moves it runs the job. */
  dueAt: Timestamp;
}
