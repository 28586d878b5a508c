/** All migrations in order. Never edit a released migration; add the next one. */
import { accounts } from './start-accounts.ts';
import { events } from './start-events.ts';
import { files } from './start-files.ts';
import { changeTriggers, processes } from './start-processes.ts';
import { resources, uniqueLongTexts } from './start-resources.ts';

interface Migration {
  readonly name: string;
  /** Run in order in one transaction. Both databases understand them after `forPostgres`. */
  readonly statements: readonly string[];
  /** Run after `statements`, for syntax that the databases do not share, such as triggers. */
  readonly only?: { readonly sqlite: readonly string[]; readonly postgres: readonly string[] };
}

/**
 * The schema of version 0.1.0. That version had a migration for each step before it, up to `LAST_OF_0_1_0`, so its
 * databases have this schema.
 */
export const START = '031-start';
export const LAST_OF_0_1_0 = '031-no-notes';

export const migrations: readonly Migration[] = [
  {
    name: START,
    statements: [...resources, ...accounts, ...events, ...files, ...processes],
    only: {
      sqlite: [...uniqueLongTexts.sqlite, ...changeTriggers.sqlite],
      postgres: [...uniqueLongTexts.postgres, ...changeTriggers.postgres],
    },
  },
  { name: '032-jobs-without-leases', statements: ['alter table "scheduledJobs" drop column "lease"'] },
];
