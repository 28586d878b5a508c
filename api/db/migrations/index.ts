/** All migrations in order. Never edit a released migration; add the next one. */
import { createFirstRelease } from './001-first-release.ts';
import type { SchemaWriter } from './schema-writer.ts';

interface Migration {
  /** Begins with a number, because migrations run in the order of their names. */
  readonly name: string;
  /** Runs in a transaction, which may run twice. */
  readonly up: (write: SchemaWriter) => Promise<void>;
}

export const FIRST = '001-first-release';

export const migrations: readonly Migration[] = [{ name: FIRST, up: createFirstRelease }];
