/**
 * What the API's requests cost while one database grows: `npm run bench:api -- [responses …]`, by default 10 thousand,
 * 100 thousand and a million. Times are those of a caller on the same machine, over one connection, one request at a
 * time; the database is a file, as in production. After the requests of a size comes what webhooks get through (see
 * webhooks.ts). Ends with 1 when a median is not in single-digit milliseconds.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { openDatabase } from '#api/db/database.ts';
import { describeMachine } from '../machine.ts';
import { median, quantile } from '../statistics.ts';
import { fill, sample } from './fill.ts';
import { idIn, type Operation, operationsOn } from './operations.ts';
import { type Service, startService, workspaceId } from './service.ts';
import { describe, measureWebhooks } from './webhooks.ts';

const SIZES = [10_000, 100_000, 1_000_000];
const GOAL_MS = 10;
const WARM_UP = 50;
const SURVEYS = 20;
/** Rows to ask for. */
const SAMPLE = 500;
/** As many at a time hear of every event. */
const WEBHOOKS = [1, 10];

interface Figures {
  readonly median: number;
  readonly p95: number;
}

async function main(): Promise<number> {
  const given = process.argv.slice(2).map(Number);
  const sizes = given.length > 0 ? [...new Set(given)].toSorted((a, b) => a - b) : SIZES;
  if (sizes.some((size) => !Number.isInteger(size) || size < 10_000)) {
    console.error(
      'Give numbers of responses, each at least 10000, such as: npm run bench:api -- 10000 100000',
    );
    return 1;
  }
  const { at, commit, cores, cpu, loadAverage, versions } = describeMachine(new Date(), ['api']);
  console.log(`${at}, commit ${commit}, ${cores} × ${cpu}, Node ${versions.node}, load ${loadAverage}\n`);
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));
  const path = join(folder, 'floodgate.sqlite');
  // A million responses are over a gigabyte: nothing of it stays, however this ends.
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
  const surveyIds = await prepareDatabase(path);
  const results = new Map<string, Figures[]>();
  for (const size of sizes) {
    for (const [name, figures] of await measureAt(path, surveyIds, size)) {
      results.set(name, [...(results.get(name) ?? []), figures]);
    }
  }
  return report(sizes, results);
}

/** @returns ids of surveys; the last one counts its responses */
async function prepareDatabase(path: string): Promise<readonly string[]> {
  const service = await startService(path);
  const surveyIds: string[] = [];
  for (let i = 0; i <= SURVEYS; i++) {
    const made = await service.call({
      method: 'POST',
      path: '/api/v1/management/surveys',
      body: {
        workspaceId,
        name: `Survey ${i}`,
        type: i === 0 ? 'website' : 'link',
        status: 'inProgress',
        autoComplete: i === SURVEYS ? 1_000_000 : null,
        questions: [
          { id: 'q1', type: 'openText', headline: { default: 'What?' } },
          { id: 'q2', type: 'nps', headline: { default: 'How much?' }, required: false },
        ],
      },
    });
    surveyIds.push(idIn(made));
  }
  await service.stop();
  return surveyIds;
}

async function measureAt(
  path: string,
  surveyIds: readonly string[],
  responses: number,
): Promise<ReadonlyMap<string, Figures>> {
  const { bytes, seconds } = fill({
    path,
    workspaceId,
    surveyIds,
    attributeKeyId: await attributeKeyOf(path),
    responses,
  });
  console.log(
    `${responses.toLocaleString('en')} responses: filled in ${seconds.toFixed(1)} s, ${Math.round(bytes / 2 ** 20)} MB`,
  );
  const service = await startService(path);
  try {
    const places = {
      surveyId: surveyIds[0] ?? '',
      countedSurveyId: surveyIds.at(-1) ?? '',
      sample: sample(path, SAMPLE),
    };
    const figures = new Map<string, Figures>();
    for (const operation of operationsOn(service, places)) {
      figures.set(operation.name, await time(service, operation));
    }
    for (const webhooks of WEBHOOKS)
      console.log(describe(await measureWebhooks(service, places.surveyId, webhooks)));
    return figures;
  } finally {
    await service.stop();
  }
}

async function time(service: Service, { prepare, times }: Operation): Promise<Figures> {
  const durations: number[] = [];
  for (let i = 0; i < times + WARM_UP; i++) {
    const call = await prepare(i);
    const began = performance.now();
    await service.call(call);
    if (i >= WARM_UP) durations.push(performance.now() - began);
  }
  return { median: median(durations), p95: quantile(durations, 0.95) };
}

async function attributeKeyOf(path: string): Promise<string> {
  const db = openDatabase({ kind: 'file', path });
  const key = await db
    .selectFrom('contactAttributeKeys')
    .select('id')
    .where('key', '=', 'userId')
    .executeTakeFirstOrThrow();
  await db.destroy();
  return key.id;
}

function report(sizes: readonly number[], results: ReadonlyMap<string, readonly Figures[]>): number {
  const head = sizes.map((size) => size.toLocaleString('en').padStart(17)).join('');
  console.log(`\n${'median / p95, ms'.padEnd(44)}${head}   growth of the median`);
  let isMet = true;
  for (const [name, figures] of results) {
    const cells = figures.map(({ median, p95 }) => `${median.toFixed(2)} / ${p95.toFixed(2)}`.padStart(17));
    const growth = (figures.at(-1)?.median ?? 0) / (figures[0]?.median ?? 1);
    const isWithin = figures.every((one) => one.median < GOAL_MS);
    isMet &&= isWithin;
    console.log(
      `${name.padEnd(44)}${cells.join('')}   ${growth.toFixed(2)}×${isWithin ? '' : '  over the goal'}`,
    );
  }
  console.log(`\nGoal: every median below ${GOAL_MS} ms. ${isMet ? 'Met.' : 'Not met.'}`);
  return isMet ? 0 : 1;
}

process.exitCode = await main();
