/** The schema of the first release. Rows are deleted with their owner; a row that only refers to another one stays. */
import type { Kysely } from 'kysely';
import { accounts, indexesOfAccounts } from './accounts.ts';
import { events, indexesOfEvents } from './events.ts';
import { createTables } from './schema-writer.ts';
import { indexesOfSurveys, surveys } from './surveys.ts';

export async function createFirstRelease(db: Kysely<unknown>): Promise<void> {
  const indexes = { ...indexesOfAccounts, ...indexesOfSurveys, ...indexesOfEvents };
  await createTables(db, { ...accounts, ...surveys, ...events }, indexes);
}
