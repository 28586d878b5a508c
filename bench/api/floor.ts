/**
 * The least that a request could cost, as servers of as many processes as the API has. `insert`: a plain Fastify route
 * that writes one response with the API's own driver and settings, and checks nothing. `echo`: `node:http` that answers
 * with bytes it is given. Ends with the process that started it.
 */
import cluster from 'node:cluster';
import { randomBytes } from 'node:crypto';
import { createServer } from 'node:http';
import SqliteDatabase from 'better-sqlite3';
import Fastify from 'fastify';
import pg from 'pg';
import { insertOf, parameterCount, valuesOf } from './row.ts';

export interface FloorOptions {
  readonly kind: 'insert' | 'echo';
  readonly port: number;
  readonly workers: number;
  /** As `DATABASE_URL`. */
  readonly databaseUrl: string;
  readonly workspaceId: string;
  /** What `echo` answers, in JSON. */
  readonly body: string;
}

const HOST = '127.0.0.1';
/** As the API's, by default. */
const POOL_SIZE = 10;

type Insert = (values: readonly (string | number)[]) => unknown;

function openInsert(databaseUrl: string): Insert {
  if (databaseUrl.startsWith('file:')) {
    const db = new SqliteDatabase(databaseUrl.slice('file:'.length));
    for (const pragma of ['journal_mode = WAL', 'synchronous = FULL', 'foreign_keys = ON']) db.pragma(pragma);
    const statement = db.prepare(insertOf(Array(parameterCount).fill('?')));
    return (values) => statement.run(...values);
  }
  const pool = new pg.Pool({ connectionString: databaseUrl, max: POOL_SIZE });
  const statement = insertOf(Array.from({ length: parameterCount }, (_, i) => `$${i + 1}`));
  return (values) => pool.query(statement, [...values]);
}

async function serveInsert({ databaseUrl, port, workspaceId }: FloorOptions): Promise<void> {
  const insert = openInsert(databaseUrl);
  const app = Fastify();
  app.post<{ Body: { surveyId: string; finished: boolean; data: object } }>('/', async ({ body }) => {
    const id = `c${randomBytes(12).toString('hex')}`;
    const { data, finished, surveyId } = body;
    await insert(
      valuesOf({ id, workspaceId, surveyId, finished: finished ? 1 : 0, data: JSON.stringify(data) }),
    );
    return { data: { id } };
  });
  await app.listen({ host: HOST, port });
}

function serveEcho({ body, port }: FloorOptions): void {
  const bytes = Buffer.from(body);
  const headers = { 'content-type': 'application/json; charset=utf-8', 'content-length': bytes.length };
  createServer((_, reply) => reply.writeHead(200, headers).end(bytes)).listen(port, HOST);
}

if (import.meta.main) {
  const options: FloorOptions = JSON.parse(process.env.FLOOR ?? 'null');
  if (cluster.isPrimary) {
    let ready = 0;
    cluster.on('listening', () => {
      ready += 1;
      if (ready === options.workers) console.log('ready');
    });
    cluster.on('exit', () => process.exit(1));
    for (let i = 0; i < options.workers; i++) cluster.fork();
  } else if (options.kind === 'insert') await serveInsert(options);
  else serveEcho(options);
}
