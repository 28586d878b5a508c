/** `npm run bench -- copy`: measures how long it takes to copy a database from SQLite to PostgreSQL and back. */
import { execFile } from 'node:child_process';
import { statSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { openBenchDatabase } from '#bench/api/databases.ts';
import { fill } from '#bench/api/fill.ts';
import { createSurveys, workspaceId } from '#bench/api/service.ts';
import { openSql } from '#bench/api/sql.ts';
import { command, whole } from '#bench/command.ts';
import type { Processes } from '#bench/run/processes.ts';
import { ROOT } from '#bench/run/programs.ts';
import { Report, rounded } from '#bench/run/report.ts';
import { peakMbOf } from '#bench/run/usage.ts';

/** Interval for reading the peak memory. The kernel has it only while the process exists. */
const SAMPLE_MS = 200;

async function fillSource(processes: Processes, responses: number): Promise<string> {
  const path = join(processes.directory, 'source.sqlite');
  const surveyIds = await createSurveys(processes, `file:${path}`);
  const sql = openSql(`file:${path}`);
  await fill(sql, { workspaceId, surveyIds, responses });
  await sql.close();
  return path;
}

/** @returns a row of the table @throws Error when the command fails */
async function measure(name: string, args: readonly string[]): Promise<readonly string[]> {
  const began = performance.now();
  const cli = [join(ROOT, 'api', 'cli', 'main.ts'), 'db', ...args, '--json'];
  const running = promisify(execFile)(process.execPath, cli);
  let peakMb = 0;
  const timer = setInterval(() => {
    peakMb = Math.max(peakMb, peakMbOf([running.child.pid ?? 0]));
  }, SAMPLE_MS);
  const { stdout } = await running.finally(() => clearInterval(timer));
  const seconds = (performance.now() - began) / 1000;
  const tables: readonly { readonly from: { readonly rows: number } }[] = JSON.parse(stdout).tables;
  const rowsRead = tables.reduce((sum, { from }) => sum + from.rows, 0);
  return [name, rounded(seconds, 1), rounded(rowsRead / seconds, 0), rounded(peakMb, 0)];
}

export const COPY = command({
  command: 'copy [responses]',
  describe: 'Copies a database from SQLite to PostgreSQL and back',
  builder: (program) =>
    program.positional(
      'responses',
      whole('responses', 1, 10_000_000, 1_000_000, 'Responses in the database'),
    ),
  async run(processes, { responses }) {
    const report = new Report('copy');
    const source = await fillSource(processes, responses);
    const { url, close } = await openBenchDatabase('postgres', processes);
    const from = `file:${source}`;
    const back = `file:${join(processes.directory, 'returned.sqlite')}`;
    try {
      const rows = [
        await measure('SQLite to PostgreSQL', ['copy', '--from', from, '--to', url]),
        await measure('PostgreSQL to SQLite', ['copy', '--live', '--from', url, '--to', back]),
        await measure('SQLite compared with SQLite', ['verify', '--from', from, '--to', back]),
      ];
      const title = `${responses.toLocaleString('en')} responses, ${rounded(statSync(source).size / 2 ** 20, 0)} MB`;
      report.add({ title, head: ['', 'seconds', 'rows/s', 'peak MB'], rows });
      return true;
    } finally {
      await close();
    }
  },
});
