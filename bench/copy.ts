/**
 * How long a move takes: `npm run bench:copy -- [responses] [postgres://…]`, by default a million, into a PostgreSQL server
 * of its own. Fills a SQLite file, copies it there and back with the commands that operators use, and says what each
 * took and how much memory it had. The address must name an empty database; what is copied stays there.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { openTarget } from '#api/db/copy/ends.ts';
import { fill } from './api/fill.ts';
import { describeMachine } from './machine.ts';
import { peakRssBytesOf } from './proc.ts';

const RESPONSES = 1_000_000;
const AT = '2024-01-01T00:00:00.000Z';
const MEBIBYTE = 1_048_576;
/** How often the memory of a copy is looked at; the kernel remembers its peak. */
const LOOK_MS = 200;

async function main(): Promise<number> {
  const [rows = String(RESPONSES), address = null] = process.argv.slice(2);
  const responses = Number(rows);
  if (!Number.isInteger(responses) || responses < 1) {
    console.error(
      'Give a number of responses, such as: npm run bench:copy -- 100000 postgres://me@localhost/empty',
    );
    return 1;
  }
  const { at, commit, cores, cpu, loadAverage, versions } = describeMachine(new Date(), ['api']);
  console.log(`${at}, commit ${commit}, ${cores} × ${cpu}, Node ${versions.node}, load ${loadAverage}\n`);
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const source = join(folder, 'source.sqlite');
  const returned = join(folder, 'returned.sqlite');
  await fillSource(source, responses);
  console.log(`${responses.toLocaleString('en')} responses, ${mebibytes(statSync(source).size)} MiB`);

  const server = address === null ? await ownServer() : { url: address, close: async () => undefined };
  try {
    const steps = [
      ['SQLite to PostgreSQL', ['copy', '--from', `file:${source}`, '--to', server.url]],
      ['PostgreSQL to SQLite', ['copy', '--live', '--from', server.url, '--to', `file:${returned}`]],
      ['SQLite and SQLite compared', ['verify', '--from', `file:${source}`, '--to', `file:${returned}`]],
    ] as const;
    for (const [name, args] of steps) {
      const { code, seconds, rowsRead, peakBytes } = await measure(args);
      const rate = Math.round(rowsRead / seconds).toLocaleString('en');
      console.log(`${name}: ${seconds.toFixed(1)} s, ${rate} rows/s, at most ${mebibytes(peakBytes)} MiB`);
      if (code !== 0) return 1;
    }
    return 0;
  } finally {
    await server.close();
  }
}

async function fillSource(path: string, responses: number): Promise<void> {
  const target = await openTarget({ kind: 'file', path });
  const { db } = target;
  const row = { createdAt: AT, updatedAt: AT };
  const inWorkspace = { ...row, workspaceId: 'w1' };
  await db
    .insertInto('organizations')
    .values({ id: 'o1', ...row, name: 'Bench', isOperators: 1 })
    .execute();
  await db
    .insertInto('workspaces')
    .values({
      ...{ id: 'w1', ...row, organizationId: 'o1', name: 'Bench', legacyEnvironmentId: null, styling: '{}' },
      ...{ appSetupCompleted: 0, websiteSetupCompleted: 0, recontactDays: 7, clickOutsideClose: 1 },
      ...{ overlay: 'none', placement: 'bottomRight', inAppSurveyBranding: 1 },
    })
    .execute();
  const surveyIds = ['s1', 's2'];
  for (const id of surveyIds) {
    await db
      .insertInto('surveys')
      .values({
        ...{ id, ...inWorkspace, name: id, type: 'link', status: 'inProgress', createdBy: null, slug: null },
        ...{ segmentId: null, archivedAt: null, publishOn: null, closeOn: null, document: '{}' },
      })
      .execute();
  }
  await db
    .insertInto('contactAttributeKeys')
    .values({
      ...{ id: 'k1', ...inWorkspace, key: 'userId', name: 'User Id', description: '', isUnique: 1 },
      ...{ type: 'default', dataType: 'string', isArchived: 0 },
    })
    .execute();
  await target.close();
  fill({ path, workspaceId: 'w1', surveyIds, attributeKeyId: 'k1', responses });
}

async function measure(args: readonly string[]) {
  const began = performance.now();
  const child = spawn(process.execPath, ['api/cli/main.ts', 'db', ...args, '--json'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const abandon = (): boolean => child.kill('SIGKILL');
  process.once('exit', abandon);
  let peakBytes = 0;
  const look = setInterval(() => {
    peakBytes = Math.max(peakBytes, peakRssBytesOf([child.pid ?? 0]));
  }, LOOK_MS);
  const [said, [code]] = await Promise.all([text(child.stdout), once(child, 'close')]);
  clearInterval(look);
  process.off('exit', abandon);
  const tables: readonly { readonly from: { readonly rows: number } }[] =
    code === 0 ? JSON.parse(said).tables : [];
  const rowsRead = tables.reduce((sum, { from }) => sum + from.rows, 0);
  return { code: Number(code), seconds: (performance.now() - began) / 1000, rowsRead, peakBytes };
}

/** With its safety off, as a benchmark of our own side may. */
async function ownServer(): Promise<{ readonly url: string; close(): Promise<void> }> {
  const { startPostgres } = await import('#test/support/postgres-process.ts');
  const { createPostgresDatabase } = await import('#test/support/postgres.ts');
  const server = await startPostgres();
  const { url } = await createPostgresDatabase('empty', server.url);
  return { url, close: () => server.close() };
}

function mebibytes(bytes: number): string {
  return Math.round(bytes / MEBIBYTE).toLocaleString('en');
}

process.exitCode = await main();
