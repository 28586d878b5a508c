/** The databases on which the API is measured: a SQLite file, and a PostgreSQL server with durable writes. */
import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { UsageError } from '#bench/command.ts';
import type { Processes } from '#bench/run/processes.ts';

export const DATABASES = ['sqlite', 'postgres'] as const;

type Kind = (typeof DATABASES)[number];

export interface BenchDatabase {
  readonly kind: Kind;
  /** Address of the database, in the form of `DATABASE_URL`. */
  readonly url: string;
  /** Ids of the server's processes. Empty for SQLite. */
  readonly pids: readonly number[];
  close(): Promise<void>;
}

/** Disk space for one response, including indexes and the space to build them. */
const BYTES_PER_RESPONSE = 3_500;
/** Settings of PostgreSQL that are usual for this amount of data. */
const settings = [
  'shared_buffers=2GB',
  'maintenance_work_mem=1GB',
  'max_wal_size=8GB',
  'checkpoint_timeout=30min',
];

export function checkSpace(responses: number): void {
  const { bavail, bsize } = statfsSync(tmpdir());
  const needed = responses * BYTES_PER_RESPONSE;
  if (bavail * bsize >= needed) return;
  const gigabytes = Math.ceil(needed / 2 ** 30);
  throw new UsageError(
    `${responses} responses need ${gigabytes} GB in ${tmpdir()}; set TMPDIR to a larger disk`,
  );
}

export async function openBenchDatabase(kind: Kind, { directory }: Processes): Promise<BenchDatabase> {
  if (kind === 'sqlite')
    return {
      kind,
      url: `file:${join(directory, 'floodgate.sqlite')}`,
      pids: [],
      close: async () => undefined,
    };
  const { startPostgres } = await import('#test/support/postgres-process.ts');
  const { createPostgresDatabase } = await import('#test/support/postgres.ts');
  const server = await startPostgres({ isDurable: true, settings });
  const { url } = await createPostgresDatabase('empty', server.url);
  const first = Number(readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  return { kind, url, pids: [first], close: () => server.close() };
}
