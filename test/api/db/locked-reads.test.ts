/** Reads are answered while another process writes to the SQLite file, also the first ones of a new workspace. */
import { join } from 'node:path';
import SqliteDatabase from 'better-sqlite3';
import t from 'tap';
import { migrate } from '#api/db/migrate.ts';
import { openSqlite } from '#api/db/sqlite.ts';
import { workspaceId } from '#test/support/api-app.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';
import { startDescribedApi } from '../docs/described-api.ts';
import { successOf } from '../docs/successes.ts';
import { isWrite } from '../parallel-writers/expected.ts';

const path = join(temporaryFolder(t), 'db.sqlite');
const db = openSqlite(path, () => undefined, 100);
await migrate(db);
const described = await startDescribedApi(t, { parts: () => ({ db }) });
const { api, operations, world } = described;
const other = new SqliteDatabase(path);
t.teardown(() => other.close());

/** Makes the workspace and the keys look new. */
async function forgetUses(): Promise<void> {
  await db.updateTable('workspaces').set({ appSetupCompleted: 0 }).execute();
  await db.updateTable('apiKeys').set({ lastUsedAt: null }).execute();
  api.context.states.purge(workspaceId);
}

// This one tells whether the database can be written.
const reads = operations.filter((operation) => !isWrite(operation) && operation.name !== 'GET /ready');
for (const operation of reads) {
  t.test(operation.name, async (t) => {
    const request = await successOf(described, operation);
    await forgetUses();
    other.exec('begin immediate');
    const { status, text } = await world.options.send(request).finally(() => other.exec('commit'));
    t.ok(status < 400, `${status} ${text}`);
  });
}

t.test('the first read of a state is noted when the lock is free', async () => {
  await forgetUses();
  const url = `/api/v1/client/${workspaceId}/environment`;
  await api.client('GET', url);
  const isSetUp = async () =>
    (await db.selectFrom('workspaces').select('appSetupCompleted').where('id', '=', workspaceId).execute())[0]
      ?.appSetupCompleted === 1;
  await until(isSetUp, 'the workspace is set up');
});
