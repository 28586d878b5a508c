/**
 * What the API's requests cost while one database grows, on SQLite and on PostgreSQL: `npm run bench:api -- --help`.
 * First one request at a time, over one connection, then webhooks (webhooks.ts), then many clients at once
 * (under-load.ts). The database is one as in production, on the disk. Ends with 1 when a median of one request at a time
 * is not in single-digit milliseconds, exports apart.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describeMachine } from '../machine.ts';
import { usageOf } from '../proc.ts';
import { version } from '../tools.ts';
import { describe as describeCosts, type Figures, report, time, warmUp } from './costs.ts';
import { attributeKeyOf, type BenchDatabase, checkSpace, openBenchDatabase } from './databases.ts';
import { operationsOn } from './operations.ts';
import { type Options, readOptions, USAGE, UsageError } from './options.ts';
import { type Service, startService, workspaceId } from './service.ts';
import { makeSurveys } from './surveys.ts';
import { measureUnderLoad } from './under-load.ts';
import { describe, measureWebhooks } from './webhooks.ts';

/** Rows to ask for. */
const SAMPLE = 500;
/** As many at a time hear of every event. */
const WEBHOOKS = [1, 10];

async function main(): Promise<number> {
  let options: Options | null;
  try {
    options = readOptions(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof UsageError)) throw error;
    console.error(`${error.message}\n\n${USAGE}`);
    return 2;
  }
  if (options === null) {
    console.log(USAGE);
    return 0;
  }
  checkSpace(options.rows.at(-1) ?? 0);
  const { at, commit, cores, cpu, loadAverage, versions } = describeMachine(new Date(), ['api']);
  console.log(`${at}, commit ${commit}, ${cores} × ${cpu}, load ${loadAverage}`);
  console.log(`Node ${versions.node}, ${version('psql', '--version')}, ${options.workers} processes`);
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));
  // Ten million responses are 20 GB: nothing of it stays, however this ends.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  let isMet = true;
  for (const kind of options.databases) {
    const database = await openBenchDatabase(kind, folder);
    try {
      isMet = (await measure(database, options, folder)) && isMet;
    } finally {
      await database.close();
    }
  }
  return isMet ? 0 : 1;
}

/** @returns whether the goal is reached */
async function measure(database: BenchDatabase, options: Options, folder: string): Promise<boolean> {
  const start = (): Promise<Service> =>
    startService({ databaseUrl: database.url, folder, workers: options.workers });
  const surveyIds = await makeSurveys(start);
  const results = new Map<string, Figures[]>();
  for (const responses of options.rows) {
    const plan = { workspaceId, surveyIds, attributeKeyId: await attributeKeyOf(database), responses };
    const { bytes, seconds } = await database.fill(plan);
    const size = `${Math.round(bytes / 2 ** 20).toLocaleString('en')} MB`;
    console.log(
      `\n${database.kind}, ${responses.toLocaleString('en')} responses: filled in ${seconds.toFixed(1)} s, ${size}`,
    );
    const service = await start();
    try {
      for (const [name, figures] of await measureAt(database, service, surveyIds, options)) {
        results.set(name, [...(results.get(name) ?? []), figures]);
      }
    } finally {
      await service.stop();
    }
  }
  return report(database.kind, options.rows, results, console.log);
}

async function measureAt(
  database: BenchDatabase,
  service: Service,
  surveyIds: readonly string[],
  options: Options,
): Promise<ReadonlyMap<string, Figures>> {
  const [surveyId = ''] = surveyIds;
  const sample = await database.sample(SAMPLE);
  const places = { surveyId, countedSurveyId: surveyIds.at(-1) ?? '', sample };
  const figures = new Map<string, Figures>();
  const usage = () => ({
    servingUs: usageOf([service.pid]).cpuUs,
    databaseUs: usageOf(database.pids()).cpuUs,
  });
  const operations = operationsOn(service, places).filter(({ part }) => options.only.includes(part));
  await warmUp(service, operations);
  for (const operation of operations) {
    const found = await time(service, operation, usage);
    console.log(describeCosts(operation.name, found));
    figures.set(operation.name, found);
  }
  if (options.only.includes('webhooks')) {
    for (const webhooks of WEBHOOKS)
      console.log(describe(await measureWebhooks(service, surveyId, webhooks)));
  }
  if (options.only.includes('load')) {
    const { rounds, seconds, workers } = options;
    const plan = { service, database, surveyId, userIds: sample.userIds, rounds, seconds, workers };
    await measureUnderLoad(plan, console.log);
  }
  return figures;
}

process.exitCode = await main();
