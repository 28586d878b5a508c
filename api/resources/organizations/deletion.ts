/**
 * Deletes organizations in two steps. The first marks their rows and deletes their keys. From then on nothing finds their
 * workspaces: every query that begins at a workspace, a key, a session, a webhook or a mail skips those with a mark. A
 * scheduled job then deletes the content in slices, so that nobody waits long, and the row last. So if a crash ends the job,
 * the next run continues, in any process. Two may run at once, because each slice locks the row.
 */
import type { SelectQueryBuilder } from 'kysely';
import { deletingWorkspaces } from '#api/db/deleting.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database, Tables, Timestamp } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { deleteWorkspace } from '#api/resources/workspaces/store.ts';
import { removeFiles } from '#api/storage/files.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import type { Clock } from '#shared/clock.ts';
import { deleteEmptied } from './store.ts';

interface DeletionLog {
  info(fields: object, message: string): void;
}

type Rows = SelectQueryBuilder<Tables, keyof Tables, { id: string }>;

/**
 * The tables of which a workspace may have any number of rows, each after those that refer to it. The rows of other
 * tables go with these, or with the row of the workspace.
 */
const contents: Readonly<Partial<Record<keyof Tables, (db: Database, workspaceId: string) => Rows>>> = {
  mailOutbox: (db, id) => db.selectFrom('mailOutbox').select('id').where('workspaceId', '=', id),
  deliveries: (db, id) =>
    db
      .selectFrom('deliveries')
      .select('id')
      .where('webhookId', 'in', db.selectFrom('webhooks').select('id').where('workspaceId', '=', id)),
  events: (db, id) => db.selectFrom('events').select('id').where('workspaceId', '=', id),
  responses: (db, id) => db.selectFrom('responses').select('id').where('workspaceId', '=', id),
  displays: (db, id) =>
    db
      .selectFrom('displays')
      .select('id')
      .where('surveyId', 'in', db.selectFrom('surveys').select('id').where('workspaceId', '=', id)),
  contactAttributes: (db, id) => {
    const keys = db.selectFrom('contactAttributeKeys').select('id').where('workspaceId', '=', id);
    return db.selectFrom('contactAttributes').select('id').where('attributeKeyId', 'in', keys);
  },
  contacts: (db, id) => db.selectFrom('contacts').select('id').where('workspaceId', '=', id),
  surveys: (db, id) => db.selectFrom('surveys').select('id').where('workspaceId', '=', id),
  segments: (db, id) => db.selectFrom('segments').select('id').where('workspaceId', '=', id),
};

/** Call it in a transaction that has locked them. */
export async function deleteOrganizations(
  trx: Database,
  ids: readonly string[],
  now: Timestamp,
): Promise<void> {
  if (ids.length === 0) return;
  await trx.deleteFrom('apiKeys').where('organizationId', 'in', ids).execute();
  await trx.updateTable('workspaces').set({ deletingAt: now }).where('organizationId', 'in', ids).execute();
  await trx.updateTable('organizations').set({ deletingAt: now }).where('id', 'in', ids).execute();
}

/** Deletes marked workspaces, and then marked organizations that have none left. */
export async function deleteMarked(
  { db, clock }: { readonly db: Database; readonly clock: Clock },
  isStopping: () => boolean,
  log: DeletionLog,
): Promise<void> {
  for (const { id } of await deletingWorkspaces(db).orderBy('deletingAt').execute()) {
    for (const [table, rowsOf] of Object.entries(contents)) {
      await inSlices(
        (rowsMax) =>
          db.transaction().execute(async (trx) => {
            // A slice that is not full shows that nothing is left, as nobody else deletes meanwhile.
            await lockRow(trx, 'workspaces', id);
            return deleteSome(trx, table as keyof Tables, rowsOf(trx, id).limit(rowsMax));
          }),
        isStopping,
      );
    }
    if (isStopping()) return;
    // The sweep of files deletes their objects.
    await removeFiles(db, { workspaceId: id }, toTimestamp(clock()));
    await deleteWorkspace(db, id);
    log.info({ job: 'deleteMarked', workspaceId: id }, 'a workspace was deleted with everything in it');
  }
  await deleteEmptied(db);
}
