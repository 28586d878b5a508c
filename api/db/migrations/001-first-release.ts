/** The schema of the first release. Rows are deleted with their owner; a row that only refers to another one stays. */
import { accounts } from './accounts.ts';
import { events } from './events.ts';
import { countTriggers } from './response-counts.ts';
import { createTables, type SchemaWriter } from './schema-writer.ts';
import { surveys } from './surveys.ts';

export async function createFirstRelease(write: SchemaWriter): Promise<void> {
  const { isPostgres } = write;
  await createTables(write, { ...accounts, ...surveys, ...events });
  const statements = [
    `create index "contactAttributes_value" on "contactAttributes"
      ("attributeKeyId", ${isPostgres ? 'hashtextextended("value", 0)' : '"value"'})`,
    ...countTriggers(isPostgres),
  ];
  for (const statement of statements) await write.run(statement);
}
