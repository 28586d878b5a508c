/** The types of the tables, which the migrations describe. */
import type { Kysely } from 'kysely';
import type { accounts } from './migrations/accounts.ts';
import type { events } from './migrations/events.ts';
import type { TablesOf } from './migrations/schema-writer.ts';
import type { surveys } from './migrations/surveys.ts';

export type { Permission, Role } from './migrations/accounts.ts';
export type { EventType } from './migrations/events.ts';
export type { Flag } from './migrations/schema-writer.ts';

export interface Tables
  extends TablesOf<typeof accounts>,
    TablesOf<typeof surveys>,
    TablesOf<typeof events> {}

export type AccountTokenTable = Tables['accountTokens'];
export type ActionClassTable = Tables['actionClasses'];
export type ApiKeyTable = Tables['apiKeys'];
export type ContactTable = Tables['contacts'];
export type ContactAttributeTable = Tables['contactAttributes'];
export type ContactAttributeKeyTable = Tables['contactAttributeKeys'];
export type DeliveryTable = Tables['deliveries'];
export type DisplayTable = Tables['displays'];
export type FileTable = Tables['files'];
export type LanguageTable = Tables['languages'];
export type MailOutboxTable = Tables['mailOutbox'];
export type MembershipTable = Tables['memberships'];
export type OrganizationTable = Tables['organizations'];
export type ResponseTable = Tables['responses'];
export type SegmentTable = Tables['segments'];
export type SessionTable = Tables['sessions'];
export type SurveyTable = Tables['surveys'];
export type UserTable = Tables['users'];
export type WebhookTable = Tables['webhooks'];
export type WorkspaceTable = Tables['workspaces'];

/** The database, or a transaction in it. */
export type Database = Kysely<Tables>;

export type Json = string;
/** ISO 8601, UTC, three decimals. */
export type Timestamp = string;

/** A row as its store returns it: readonly, and with some columns in another form. */
export type Decoded<Table, Forms = unknown> = Readonly<Omit<Table, keyof Forms> & Forms>;

/** The columns of a queue, see db/queue.ts. */
export type QueueColumns = Pick<
  DeliveryTable | MailOutboxTable,
  'id' | 'updatedAt' | 'status' | 'attemptCount' | 'failureCount' | 'dueAt' | 'lease'
>;
