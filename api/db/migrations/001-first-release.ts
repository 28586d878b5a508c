/** The schema of the first release. Rows are deleted with their owner; a row that only refers to another one stays. */
import { accounts } from './accounts.ts';
import { events } from './events.ts';
import { countTriggers } from './response-counts.ts';
import { createTables, type SchemaWriter } from './schema-writer.ts';
import { surveys } from './surveys.ts';

export async function createFirstRelease(write: SchemaWriter): Promise<void> {
  const { isPostgres } = write;
  await createTables(write, { ...accounts, ...surveys, ...events });
  for (const statement of countTriggers(isPostgres)) await write.run(statement);
}
