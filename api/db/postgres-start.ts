/** Prepares PostgreSQL before the first request: waits for the server, and checks it. */
import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Millis } from '#shared/clock.ts';
import { codeOf, DatabaseBusy, DatabaseFault, DatabaseUnavailable, reasonOf } from './faults.ts';
import type { PostgresLocation } from './postgres-address.ts';
import type { Database } from './schema.ts';

const VERSION_MIN = 13;
const PAUSE_MS: Millis = 250;

/**
 * Waits until the server answers, because Compose may start it at the same time.
 *
 * @param onWait called once if there is a wait
 * @throws DatabaseUnavailable if the server does not answer in time, refuses the login, or cannot be used
 */
export async function awaitPostgres(
  db: Database,
  { host, port, database }: PostgresLocation,
  waitMs: Millis,
  onWait: (reason: DatabaseBusy) => void,
): Promise<void> {
  const where = host.startsWith('/') ? host : `${host}:${port}`;
  const deadline = performance.now() + waitMs;
  for (let isFirst = true; ; isFirst = false) {
    try {
      await checkServer(db, database);
      return;
    } catch (error) {
      if (error instanceof DatabaseFault) throw new DatabaseUnavailable(adviceFor(error, database), error);
      if (!(error instanceof DatabaseBusy)) throw error;
      if (performance.now() + PAUSE_MS > deadline) {
        throw new DatabaseUnavailable(
          `the server at ${where} does not answer (${reasonOf(error.cause)}); start it, or correct the address`,
          error,
        );
      }
      if (isFirst) onWait(error);
    }
    await sleep(PAUSE_MS);
  }
}

async function checkServer(db: Database, database: string): Promise<void> {
  const { rows } = await sql<{ version: string; encoding: string }>`
    select current_setting('server_version_num') as "version", current_setting('server_encoding') as "encoding"`.execute(
    db,
  );
  const [server] = rows;
  if (server === undefined) throw new Error('The server did not say which version it is');
  const major = Math.floor(Number(server.version) / 10_000);
  if (major < VERSION_MIN) {
    throw new DatabaseUnavailable(
      `PostgreSQL ${major} is too old; give one of ${VERSION_MIN} or later`,
      null,
    );
  }
  if (server.encoding !== 'UTF8') {
    throw new DatabaseUnavailable(
      `the database ${database} is encoded in ${server.encoding}; make one with "create database … encoding 'UTF8' template template0"`,
      null,
    );
  }
}

function adviceFor(fault: DatabaseFault, database: string): string {
  const { cause } = fault;
  const code = codeOf(cause);
  const reason = reasonOf(cause);
  if (code === '3D000') return `there is no database ${database}; make it with "create database"`;
  if (code.startsWith('28') || /SASL|client password/.test(reason)) {
    return `the server refuses the user (${reason}); correct user and password, or the server's pg_hba.conf`;
  }
  if (/SSL|TLS|CERT|certificate/i.test(`${code} ${reason}`)) {
    return `no encrypted connection (${reason}); give sslrootcert the authority's certificate, or write sslmode=no-verify to skip the check`;
  }
  return fault.message.replace(/^DATABASE_URL: /, '');
}

/** Explains missing rights. Creating tables is the first statement that needs them. */
export function migrationAdvice(error: unknown): unknown {
  const cause = error instanceof DatabaseFault ? error.cause : null;
  const code = codeOf(cause);
  if (code !== '42501' && code !== '3F000') return error;
  return new DatabaseUnavailable(
    `the user may not make tables (${reasonOf(cause)}); make it the owner of the database, or "grant usage, create on schema" to it`,
    error,
  );
}
