/** Fills the first workspace with rows of every kind that belongs to a workspace, and counts rows of all tables. */
import { sql } from 'kysely';
import { openDatabase } from '#api/db/database.ts';
import { migrate } from '#api/db/migrate.ts';
import type { Database, Tables } from '#api/db/schema.ts';
import { type TestApi, workspaceId } from './api-app.ts';
import { addFileRow, receiveFile } from './files.ts';
import { responseRow } from './response-row.ts';

const at = '2026-01-01T00:00:00.000Z';
const row = (id: string) => ({ id, createdAt: at, updatedAt: at });
const inFirst = (id: string) => ({ ...row(id), workspaceId });
const FILES = 3;

/** @param many how many of those rows of which a workspace may have any number */
export async function fillWorkspace(api: TestApi, many: number): Promise<void> {
  const { db } = api.context;
  const numbers = Array.from({ length: many }, (_, i) => i);
  const insert = async (table: keyof Tables, rows: readonly object[]): Promise<void> => {
    for (let start = 0; start < rows.length; start += 200) {
      await db
        .insertInto(table)
        .values(rows.slice(start, start + 200) as never)
        .execute();
    }
  };
  await insert('languages', [{ ...inFirst('language'), code: 'de', alias: null }]);
  await insert('actionClasses', [{ ...inFirst('action'), name: 'a', type: 'code', key: 'a' }]);
  await insert('segments', [{ ...inFirst('segment'), title: 's', description: null, filters: '[]' }]);
  const survey = { name: 's', type: 'app', status: 'inProgress', segmentId: 'segment', document: '{}' };
  await insert(
    'surveys',
    numbers.map((i) => ({ ...inFirst(`survey${i}`), ...survey })),
  );
  await insert(
    'contacts',
    numbers.map((i) => ({ ...inFirst(`contact${i}`), userId: `u${i}` })),
  );
  const key = await db
    .selectFrom('contactAttributeKeys')
    .select('id')
    .where('workspaceId', '=', workspaceId)
    .where('isUnique', '=', 0)
    .executeTakeFirstOrThrow();
  await insert(
    'contactAttributes',
    numbers.map((i) => ({ ...row(`ca${i}`), contactId: `contact${i}`, attributeKeyId: key.id, value: 'x' })),
  );
  await insert(
    'displays',
    numbers.map((i) => ({ ...row(`display${i}`), surveyId: 'survey0', contactId: `contact${i}` })),
  );
  await insert(
    'responses',
    numbers.map((i) => ({
      ...responseRow(`response${i}`, 'survey0'),
      ...{ contactId: `contact${i}`, displayId: `display${i}` },
    })),
  );
  await insert(
    'webhooks',
    [{ ...inFirst('webhook'), name: null, url: 'http://x.example/', source: 'user', triggers: '[]' }].map(
      (webhook) => ({ ...webhook, surveyIds: '[]', secret: 'whsec_AAAA' }),
    ),
  );
  await insert(
    'events',
    numbers.map((i) => ({
      ...{ id: `event${i}`, createdAt: at, workspaceId, surveyId: 'survey0', responseId: `response${i}` },
      ...{ type: 'responseCreated', payload: '{}', mailsDueAt: null },
    })),
  );
  await insert(
    'deliveries',
    numbers.map((i) => ({
      ...{ ...row(`delivery${i}`), eventId: `event${i}`, webhookId: 'webhook', status: 'pending' },
      ...{ attemptCount: 1, failureCount: 1, dueAt: at, lease: null },
    })),
  );
  await insert('deliveryAttempts', [{ deliveryId: 'delivery0', number: 1, startedAt: at, durationMs: 1 }]);
  await insert(
    'mailOutbox',
    numbers.map((i) => ({
      ...{ ...inFirst(`mail${i}`), kind: 'surveyLink', recipient: 'x@example.com', subject: 's', body: 'b' },
      ...{ status: 'pending', attemptCount: 0, failureCount: 0, dueAt: at },
    })),
  );
  for (const key of fileKeys) {
    await addFileRow(api, key, { createdAt: at, size: 1 });
    await receiveFile(api, key, 'x');
  }
}

/** The keys of the files that `fillWorkspace` stores. */
export const fileKeys: readonly string[] = Array.from(
  { length: FILES },
  (_, i) => `${workspaceId}/${i === 0 ? 'public' : 'private'}/file${i}.png`,
);

/** Tables that record what happened. They outlive a workspace. */
const RECORDS = ['auditEvents', 'migrations', 'migrationsLock', 'probes'];

/** @returns the number of rows of each table that is not a record of what happened */
export async function countTables(db: Database): Promise<Readonly<Record<string, number>>> {
  const { names } = await schema();
  const counts = names.map((name) => sql`(select count(*) from ${sql.table(name)}) as ${sql.ref(name)}`);
  const { rows } = await sql<Record<string, number | string>>`select ${sql.join(counts)}`.execute(db);
  // PostgreSQL returns counts as text.
  return Object.fromEntries(Object.entries(rows[0] ?? {}).map(([name, count]) => [name, Number(count)]));
}

/** @returns the tables whose rows go with a workspace: those that refer to it, or to such a table, and the files */
export async function tablesOfWorkspaces(): Promise<readonly string[]> {
  const { references } = await schema();
  const found = new Set(['workspaces']);
  for (let size = 0; size < found.size; ) {
    size = found.size;
    for (const { from, to, action } of references) if (action === 'CASCADE' && found.has(to)) found.add(from);
  }
  return [...found, 'files'].sort();
}

interface Schema {
  readonly names: readonly string[];
  readonly references: readonly { readonly from: string; readonly to: string; readonly action: string }[];
}

let known: Promise<Schema> | undefined;

/** Both databases have the same tables. */
function schema(): Promise<Schema> {
  known ??= readSchema();
  return known;
}

async function readSchema(): Promise<Schema> {
  const db = openDatabase({ kind: 'memory' });
  await migrate(db);
  const { rows: references } = await sql<Schema['references'][number]>`
    select m."name" as "from", f."table" as "to", f."on_delete" as "action"
    from sqlite_master m, pragma_foreign_key_list(m."name") f where m."type" = 'table'`.execute(db);
  const names = (await db.introspection.getTables()).map(({ name }) => name);
  await db.destroy();
  return { names: names.filter((name) => !RECORDS.includes(name)).sort(), references };
}
