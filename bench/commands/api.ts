/**
 * `npm run bench -- api`: measures the cost of requests to the survey API, on SQLite and PostgreSQL of growing size.
 */
import { type BenchDatabase, checkSpace, DATABASES, openBenchDatabase } from '#bench/api/databases.ts';
import { fill, sample } from '#bench/api/fill.ts';
import { type Cost, operationsOn, PARTS, type Places, time, warmUp } from '#bench/api/operations.ts';
import { createSurveys, type Service, startService, workspaceId } from '#bench/api/service.ts';
import { openSql } from '#bench/api/sql.ts';
import { measureUnderLoad } from '#bench/api/under-load.ts';
import { measureWebhooks } from '#bench/api/webhooks.ts';
import { command, names, whole } from '#bench/command.ts';
import type { Processes } from '#bench/run/processes.ts';
import { Report, rounded, type Table } from '#bench/run/report.ts';
import { usageOf } from '#bench/run/usage.ts';

const ALL_PARTS = [...PARTS, 'webhooks', 'load'] as const;
const RESPONSES = { '10k': 10_000, '1m': 1_000_000, '10m': 10_000_000 } as const;
const ROWS = Object.keys(RESPONSES) as (keyof typeof RESPONSES)[];
const USUAL_ROWS = ['10k', '1m'] as const;
const SAMPLE = 500;
const WEBHOOKS = [1, 10];
const HEAD = ['one at a time', 'p50 ms', 'p99 ms', 'API µs', 'database µs', 'growth of p50'];

interface ApiOptions {
  readonly rows: readonly (typeof ROWS)[number][];
  readonly only: readonly (typeof ALL_PARTS)[number][];
  readonly seconds: number;
  readonly rounds: number;
  readonly workers: number;
}

type Costs = ReadonlyMap<string, Cost>;

/** Fills the database to each number of responses, and measures the API at each step. */
async function measureDatabase(
  processes: Processes,
  database: BenchDatabase,
  options: ApiOptions,
  report: Report,
): Promise<void> {
  const { workers } = options;
  const surveyIds = await createSurveys(processes, database.url);
  const [surveyId = '', countedSurveyId = ''] = [surveyIds[0], surveyIds.at(-1)];
  let first: Costs | null = null;
  for (const responses of options.rows.map((name) => RESPONSES[name])) {
    const sql = openSql(database.url);
    const { bytes, seconds } = await fill(sql, { workspaceId, surveyIds, responses });
    const places = { surveyId, countedSurveyId, sample: await sample(sql, SAMPLE) };
    await sql.close();
    const service = await startService(processes, { databaseUrl: database.url, workers });
    const costs = await measureOperations(service, database, places, options.only);
    first ??= costs;
    const table = {
      title: `${database.kind}, ${responses.toLocaleString('en')} responses`,
      head: HEAD,
      rows: rowsOf(costs, first),
      notes: [`filled in ${rounded(seconds, 1)} s, ${rounded(bytes / 2 ** 20, 0)} MB`],
    };
    report.add(table, Object.fromEntries(costs));
    if (options.only.includes('webhooks')) report.add(await webhookTable(service, surveyId));
    if (options.only.includes('load')) {
      const { userIds } = places.sample;
      const plan = { processes, ...options, service, database, surveyId, userIds };
      for (const table of await measureUnderLoad(plan)) report.add(table);
    }
    await service.stop();
  }
}

async function measureOperations(
  service: Service,
  database: BenchDatabase,
  places: Places,
  only: ApiOptions['only'],
): Promise<Costs> {
  const operations = operationsOn(service, places).filter(({ part }) => only.includes(part));
  await warmUp(service, operations);
  const usage = () => [usageOf([service.pid]), usageOf(database.pids)] as const;
  const costs = new Map<string, Cost>();
  for (const operation of operations) costs.set(operation.name, await time(service, operation, usage));
  return costs;
}

function rowsOf(costs: Costs, first: Costs): Table['rows'] {
  return [...costs].map(([name, { p50Ms, p99Ms, apiUs, databaseUs }]) => {
    const growth = p50Ms / (first.get(name)?.p50Ms ?? p50Ms);
    const figures = [rounded(p50Ms, 2), rounded(p99Ms, 2), rounded(apiUs, 0), rounded(databaseUs, 0)];
    return [name, ...figures, `${rounded(growth, 2)}×`];
  });
}

async function webhookTable(service: Service, surveyId: string): Promise<Table> {
  const rows: string[][] = [];
  for (const webhooks of WEBHOOKS) {
    const found = await measureWebhooks(service, surveyId, webhooks);
    const figures = [found.deliveriesPerSecond, found.responsesPerSecond, found.repeated];
    rows.push([String(webhooks), ...figures.map((value) => rounded(value, 0))]);
  }
  return { title: 'Webhooks', head: ['webhooks', 'deliveries/s', 'responses/s', 'repeated'], rows };
}

export const API = command({
  command: 'api',
  describe: 'Measures the survey API on databases of its own',
  builder: (program) =>
    program.options({
      database: names('database', DATABASES, 'Databases'),
      rows: names('rows', ROWS, `Numbers of responses (default: ${USUAL_ROWS})`),
      only: names('only', ALL_PARTS, 'Parts'),
      seconds: whole('seconds', 1, 60, 4, 'Seconds of load in each round'),
      rounds: whole('rounds', 1, 20, 3, 'Rounds of load'),
      workers: whole('workers', 1, 16, 2, 'Number of API processes'),
    }),
  async run(
    processes,
    { database: kinds = DATABASES, only = ALL_PARTS, rows = USUAL_ROWS, seconds, rounds, workers },
  ) {
    checkSpace(Math.max(...rows.map((name) => RESPONSES[name])));
    const report = new Report('api');
    const options = { rows, only, seconds, rounds, workers };
    for (const kind of kinds) {
      const database = await openBenchDatabase(kind, processes);
      try {
        await measureDatabase(processes, database, options, report);
      } finally {
        await database.close();
      }
    }
    return true;
  },
});
