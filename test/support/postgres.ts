/**
 * Creates databases of PostgreSQL for tests, each as a copy of a migrated one. All files of a run share the server that
 * test/runner/main.ts started. A file that runs alone starts its own.
 */
import { randomBytes } from 'node:crypto';
import pg from 'pg';
import { openDatabase } from '#api/db/database.ts';
import { parseDatabaseUrl } from '#api/db/location.ts';
import { migrate } from '#api/db/migrate.ts';
import { startPostgres } from './postgres-process.ts';

/** Says where the shared server is: the URL of its database `postgres`. */
export const SHARED_SERVER = 'TEST_POSTGRES_URL';
const TEMPLATE = 'floodgate_template';
/** An arbitrary number: the connection that holds this lock makes the template. */
const TEMPLATE_LOCK = 1_503_110_405;

let server: Promise<string> | null = null;

function serverUrl(): Promise<string> {
  const shared = process.env[SHARED_SERVER];
  server ??= shared === undefined ? startPostgres().then(({ url }) => url) : Promise.resolve(shared);
  return server;
}

interface PostgresDatabase {
  readonly url: string;
  /** Ends connections that are still open. */
  drop(): Promise<void>;
}

/**
 * @param kind `migrated` has our tables, `empty` has none
 * @param origin the URL of the database `postgres` of another server
 */
export async function createPostgresDatabase(
  kind: 'migrated' | 'empty' = 'migrated',
  origin?: string,
): Promise<PostgresDatabase> {
  const admin = origin ?? (await serverUrl());
  if (kind === 'migrated') await ensureTemplate(admin);
  const name = `test_${process.pid}_${randomBytes(4).toString('hex')}`;
  await ask(admin, `create database ${name}${kind === 'migrated' ? ` template ${TEMPLATE}` : ''}`);
  return { url: urlOf(admin, name), drop: () => ask(admin, `drop database if exists ${name} with (force)`) };
}

function urlOf(admin: string, name: string): string {
  const url = new URL(admin);
  url.pathname = name;
  return url.href;
}

/** Runs one statement over a connection of its own. */
export async function ask(url: string, statement: string): Promise<void> {
  await withClient(url, (client) => client.query(statement));
}

async function withClient(url: string, work: (client: pg.Client) => Promise<unknown>): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    await work(client);
  } finally {
    await client.end();
  }
}

const templates = new Map<string, Promise<void>>();

function ensureTemplate(admin: string): Promise<void> {
  const known = templates.get(admin) ?? makeTemplate(admin);
  templates.set(admin, known);
  return known;
}

function makeTemplate(admin: string): Promise<void> {
  return withClient(admin, async (client) => {
    await client.query(`select pg_advisory_lock(${TEMPLATE_LOCK})`);
    const found = await client.query(`select 1 from pg_database where datname = '${TEMPLATE}'`);
    if (found.rows.length > 0) return;
    // The template has another name until it is complete.
    await client.query(`create database ${TEMPLATE}_new`);
    const db = openDatabase(parseDatabaseUrl(urlOf(admin, `${TEMPLATE}_new`), '/'));
    await migrate(db);
    await db.destroy();
    await client.query(`alter database ${TEMPLATE}_new rename to ${TEMPLATE}`);
  });
}
