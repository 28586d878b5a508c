/**
 * Workspaces that are being deleted: marked rows, see resources/organizations/deletion.ts. There are few, and an index has
 * them alone.
 */
import type { Database } from './schema.ts';

/** Selects their ids. */
export function deletingWorkspaces(db: Database) {
  return db.selectFrom('workspaces').select('workspaces.id').where('workspaces.deletingAt', 'is not', null);
}
