/** The tables by which several processes of the API get along. */
import type { Generated } from 'kysely';
import type { Timestamp } from './columns.ts';

/** The state of a workspace has changed. Written by triggers, the newest thousand are kept. */
export interface StateChangeTable {
  /** Without gaps, in the order of the commits. */
  id: Generated<number>;
  workspaceId: string;
  environmentId: string;
}

export interface ScheduledJobTable {
  name: string;
  /** When it may be begun: after its period, or when the lease of whoever runs it has run out. */
  dueAt: Timestamp;
  /** Of whoever runs it. */
  lease: string | null;
}
