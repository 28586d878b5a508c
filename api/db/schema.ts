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
}

/** Keys that the service made for itself, once; what they sign stays valid over restarts. */
export interface SecretTable {
  name: string;
  /** base64url */
  value: string;
  createdAt: Timestamp;
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

export interface WebhookTable extends Row {
  workspaceId: string;
  name: string | null;
  url: string;
  source: string;
  triggers: Json;
  surveyIds: Json;
  secret: string | null;
}
