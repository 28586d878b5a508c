/** The schema of the first release. Rows are deleted with their owner; a row that only refers to another one stays. */
import { createAccounts, createWorkspaces } from './accounts.ts';
import { createEvents, createFiles, createMailsAndJobs } from './events.ts';
import { createCountTriggers } from './response-counts.ts';
import type { SchemaWriter } from './schema-writer.ts';
import { createChangeTriggers } from './state-changes.ts';
import { createContacts, createResponses, createSurveys } from './surveys.ts';

export async function createFirstRelease(write: SchemaWriter): Promise<void> {
  await createAccounts(write);
  await createWorkspaces(write);
  await createSurveys(write);
  await createContacts(write);
  await createResponses(write);
  await createEvents(write);
  await createFiles(write);
  await createMailsAndJobs(write);
  await createChangeTriggers(write);
  await createCountTriggers(write);
}
