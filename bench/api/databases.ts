/** The databases that the API is measured on: a SQLite file, or a PostgreSQL server that keeps what it acknowledges. */
import { readFileSync, statfsSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Kysely } from 'kysely';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import type { Database } from '#api/db/schema.ts';
import { type Filled, type FillPlan, fill, type Sample, sample } from './fill.ts';
import { fillPostgres, samplePostgres } from './fill-postgres.ts';
import type { DatabaseKind } from './options.ts';

export interface BenchDatabase {
  readonly kind: DatabaseKind;
  /** As `DATABASE_URL`. */
  readonly url: string;
  /** Of the server; none for a file. */
  pids(): readonly number[];
  /** Nobody may have it open. */
  fill(plan: FillPlan): Promise<Filled>;
  /** Some rows, spread evenly. */
  sample(size: number): Promise<Sample>;
  close(): Promise<void>;
}

/** With indexes, and what building them takes for a while. */
const BYTES_PER_RESPONSE = 3_500;
/** What a server with this much data would be given. */
const settings = [
  'shared_buffers=2GB',
  'maintenance_work_mem=1GB',
  'max_wal_size=8GB',
  'checkpoint_timeout=30min',
];

/** @throws Error when the disk has no room for so many responses */
export function checkSpace(responses: number): void {
  const { bavail, bsize } = statfsSync(tmpdir());
  const needed = responses * BYTES_PER_RESPONSE;
  if (bavail * bsize < needed) {
    const gigabytes = Math.ceil(needed / 2 ** 30);
    throw new Error(
      `${responses} responses need ${gigabytes} GB in ${tmpdir()}; set TMPDIR to a larger disk`,
    );
  }
}

export async function openBenchDatabase(kind: DatabaseKind, folder: string): Promise<BenchDatabase> {
  if (kind === 'sqlite') {
    const path = join(folder, 'floodgate.sqlite');
    return {
      kind,
      url: `file:${path}`,
      pids: () => [],
      fill: async (plan) => fill({ ...plan, path }),
      sample: async (size) => sample(path, size),
      close: async () => undefined,
    };
  }
  const { startPostgres } = await import('#test/support/postgres-process.ts');
  const { createPostgresDatabase } = await import('#test/support/postgres.ts');
  const server = await startPostgres({ isDurable: true, settings });
  const { url } = await createPostgresDatabase('empty', server.url);
  const first = Number(readFileSync(join(server.folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0]);
  return {
    kind,
    url,
    pids: () => [first],
    fill: (plan) => fillPostgres(url, plan),
    sample: (size) => samplePostgres(url, size),
    close: () => server.close(),
  };
}

/** The key that user ids are attributes of. */
export async function attributeKeyOf({ url }: BenchDatabase): Promise<string> {
  const db: Kysely<Database> = openDatabase(parseDatabaseUrl(url, '/'));
  try {
    const keys = db.selectFrom('contactAttributeKeys').select('id').where('key', '=', 'userId');
    return (await keys.executeTakeFirstOrThrow()).id;
  } finally {
    await db.destroy();
  }
}
