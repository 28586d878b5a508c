/** `npm run bench -- api`: measures what requests to the survey API cost while a database grows, on SQLite and PostgreSQL. */
import { type BenchDatabase, checkSpace, DATABASES, openBenchDatabase } from '#bench/api/databases.ts';
import { fill, sample } from '#bench/api/fill.ts';
import { type Cost, operationsOn, PARTS, time, warmUp } from '#bench/api/operations.ts';
import { createSurveys, type Service, startService } from '#bench/api/service.ts';
import { openSql } from '#bench/api/sql.ts';
import { measureUnderLoad } from '#bench/api/under-load.ts';
import { measureWebhooks } from '#bench/api/webhooks.ts';
import { type Bench, command, names, UsageError, whole } from '#bench/command.ts';
import { workspaceId } from '#bench/run/api.ts';
import { describeMachine } from '#bench/run/machine.ts';
import { Report } from '#bench/run/report.ts';
import { rounded, type Table } from '#bench/run/table.ts';
import { MB, usageOf } from '#bench/run/usage.ts';

const ALL_PARTS = [...PARTS, 'webhooks', 'load'] as const;
const ROWS_MIN = 10_000;
const ROWS_MAX = 10_000_000;
const SAMPLE = 500;
const WEBHOOKS = [1, 10];
const GOAL_MS = 10;

interface ApiOptions {
  readonly rows: readonly number[];
  readonly only: readonly (typeof ALL_PARTS)[number][];
  readonly seconds: number;
  readonly rounds: number;
  readonly workers: number;
}

type Costs = Map<string, Cost[]>;

/** Measures with each number of responses, and adds a table for each. @returns operation -> its cost for each number */
async function measureDatabase(
  bench: Bench,
  kind: string,
  database: BenchDatabase,
  options: ApiOptions,
  report: Report,
): Promise<Costs> {
  const start = (): Promise<Service> => startService(bench.processes, database.url, options.workers);
  const first = await start();
  const surveyIds = await createSurveys(first);
  await first.stop();
  const costs: Costs = new Map();
  for (const responses of options.rows) {
    const sql = openSql(database.url);
    const [attributeKeyId] = await sql.column(
      `select "id" from "contactAttributeKeys" where "key" = 'userId'`,
    );
    const plan = { workspaceId, surveyIds, attributeKeyId: String(attributeKeyId), responses };
    const { bytes, seconds } = await fill(sql, plan);
    const places = {
      ...{ surveyId: surveyIds[0] ?? '', countedSurveyId: surveyIds.at(-1) ?? '' },
      sample: await sample(sql, SAMPLE),
    };
    await sql.close();
    const filled = `filled in ${rounded(seconds, 1)} s, ${rounded(bytes / MB, 0)} MB`;
    const service = await start();
    const operations = operationsOn(service, places).filter(({ part }) => options.only.includes(part));
    await warmUp(service, operations);
    const usage = () => [usageOf([service.pid]), usageOf(database.pids)] as const;
    const rows: string[][] = [];
    for (const operation of operations) {
      const cost = await time(service, operation, usage);
      costs.set(operation.name, [...(costs.get(operation.name) ?? []), cost]);
      const { p50Ms, p99Ms, apiUs, databaseUs } = cost;
      rows.push([
        operation.name,
        rounded(p50Ms, 2),
        rounded(p99Ms, 2),
        rounded(apiUs, 0),
        rounded(databaseUs, 0),
      ]);
    }
    report.add({
      title: `${kind}, ${responses.toLocaleString('en')} responses`,
      head: ['one at a time', 'p50 ms', 'p99 ms', 'API µs', 'database µs'],
      ...{ rows, notes: [filled] },
    });
    if (options.only.includes('webhooks')) report.add(await webhookTable(service, places.surveyId));
    if (options.only.includes('load')) {
      const { surveyId, sample } = places;
      const loadPlan = { ...bench, ...options, service, database, surveyId, userIds: sample.userIds };
      for (const table of await measureUnderLoad(loadPlan)) report.add(table);
    }
    await service.stop();
  }
  return costs;
}

async function webhookTable(service: Service, surveyId: string): Promise<Table> {
  const rows: string[][] = [];
  for (const webhooks of WEBHOOKS) {
    const found = await measureWebhooks(service, surveyId, webhooks);
    rows.push([
      ...[String(webhooks), rounded(found.deliveriesPerSecond, 0), rounded(found.responsesPerSecond, 0)],
      String(found.repeated),
    ]);
  }
  return { title: 'Webhooks', head: ['webhooks', 'deliveries/s', 'responses/s', 'repeated'], rows };
}

/** Exports take as long as their page. */
function isReached([name, costs]: readonly [string, readonly Cost[]]): boolean {
  return name.startsWith('export') || costs.every(({ p50Ms }) => p50Ms < GOAL_MS);
}

function growthTable(kind: string, rows: readonly number[], costs: Costs): Table {
  const isMet = [...costs].every(isReached);
  return {
    title: `${kind}: p50 ms by the number of responses`,
    head: ['', ...rows.map((count) => count.toLocaleString('en')), 'growth'],
    rows: [...costs].map(([name, own]) => {
      const growth = (own.at(-1)?.p50Ms ?? 0) / (own[0]?.p50Ms ?? 1);
      return [name, ...own.map(({ p50Ms }) => rounded(p50Ms, 2)), `${rounded(growth, 2)}×`];
    }),
    notes: [`Goal: every median below ${GOAL_MS} ms, except for exports: ${isMet ? 'reached' : 'missed'}`],
  };
}

function rowsOf(text: string): readonly number[] {
  const rows = text.split(',').map((part) => {
    const [, digits, unit = ''] = /^(\d{1,8})([km]?)$/.exec(part.trim()) ?? [];
    const count = Number(digits) * (unit === 'k' ? 1_000 : unit === 'm' ? 1_000_000 : 1);
    if (count >= ROWS_MIN && count <= ROWS_MAX) return count;
    throw new UsageError(`--rows has "${part}"; give numbers from 10k to 10m`);
  });
  return [...new Set(rows)].toSorted((a, b) => a - b);
}

export const API = command({
  command: 'api',
  describe: 'Measures the survey API on databases of its own; ends with 1 if a median is over 10 ms',
  builder: (program) =>
    program.options({
      database: names('database', DATABASES, 'Databases'),
      rows: { type: 'string', default: '10k,1m', describe: 'Numbers of responses', coerce: rowsOf },
      only: names('only', ALL_PARTS, 'Parts'),
      seconds: whole('seconds', 1, 60, 4, 'Of one visit under load'),
      rounds: whole('rounds', 1, 20, 3, 'Of visits under load'),
      workers: whole('workers', 1, 16, 2, 'Processes that serve'),
    }),
  async run(bench, { database: kinds = DATABASES, only = ALL_PARTS, rows, seconds, rounds, workers }) {
    checkSpace(rows.at(-1) ?? 0);
    const report = new Report('api', describeMachine(['api']));
    const results = [];
    for (const kind of kinds) {
      const database = await openBenchDatabase(kind, bench.processes);
      try {
        const options = { rows, only, seconds, rounds, workers };
        const costs = await measureDatabase(bench, kind, database, options, report);
        if (costs.size > 0) report.add(growthTable(kind, rows, costs));
        results.push({ kind, costs: Object.fromEntries(costs), isMet: [...costs].every(isReached) });
      } finally {
        await database.close();
      }
    }
    report.write(results);
    return results.every(({ isMet }) => isMet);
  },
});
