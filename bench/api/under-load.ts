/** Measures two requests with many clients at once, and compares them with the lowest possible cost of each. */

import { workspaceId } from '#bench/api/service.ts';
import { startEcho } from '#bench/peers/echo.ts';
import { type Compared, comparisonTable, ratios } from '#bench/run/comparison.ts';
import type { Load } from '#bench/run/load.ts';
import { compare, type Slice, type Subject } from '#bench/run/measure.ts';
import type { Processes } from '#bench/run/processes.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { median } from '#bench/run/statistics.ts';
import { freePort } from '#test/support/ports.ts';
import type { BenchDatabase } from './databases.ts';
import { insertNatively, startFloor } from './floor.ts';
import { ANSWER } from './operations.ts';
import type { Service } from './service.ts';

const CLIENTS = 32;
const WARM_SECONDS = 2;

interface LoadPlan {
  readonly processes: Processes;
  readonly service: Service;
  readonly database: BenchDatabase;
  readonly surveyId: string;
  readonly userIds: readonly string[];
  readonly seconds: number;
  readonly rounds: number;
  readonly workers: number;
}

export async function measureUnderLoad(plan: LoadPlan): Promise<readonly Table[]> {
  return [await measureCreate(plan), await measureState(plan)];
}

async function measureCreate(plan: LoadPlan): Promise<Table> {
  const { processes, database, seconds, service, surveyId, userIds, workers } = plan;
  const port = await freePort();
  const floor = await startFloor(processes, { port, workers, databaseUrl: database.url });
  const response = { surveyId, finished: true, data: ANSWER };
  const anonymous = [JSON.stringify(response)];
  const known = userIds.map((userId) => JSON.stringify({ ...response, userId }));
  const api = { origin: service.origin, pids: [service.pid], store: { pids: database.pids } };
  const path = `/api/v1/client/${workspaceId}/responses`;
  const inserted = { ...api, origin: `http://127.0.0.1:${port}`, pids: [floor.pid] };
  const native: number[] = [];
  const compared = await visitAll(
    plan,
    [
      { ...api, load: loadOf('create', path, anonymous) },
      { ...api, load: loadOf('create for a contact', path, known) },
      { ...inserted, load: loadOf('Fastify, one insert', '/', anonymous) },
    ],
    async () => {
      const found = await insertNatively(database.url, surveyId, seconds, processes);
      if (found !== null) native.push(found);
    },
  );
  await floor.stop();
  const program = database.url.startsWith('file:') ? 'sqlite3' : 'pgbench';
  const notes = native.length === 0 ? [] : [`${program}, one insert: ${rounded(median(native), 0)} a second`];
  return tableOf('Many clients: create a response', compared, notes);
}

async function measureState(plan: LoadPlan): Promise<Table> {
  const { processes, database, service, workers } = plan;
  const { origin, pid } = service;
  const path = `/api/v1/client/${workspaceId}/environment`;
  const body = await (await fetch(`${origin}${path}`)).text();
  const port = await freePort();
  const echo = await startEcho(processes, { port, workers, body });
  const floor = { origin: `http://127.0.0.1:${port}`, pids: [echo.pid], store: null };
  const compared = await visitAll(plan, [
    { origin, pids: [pid], store: { pids: database.pids }, load: loadOf('state', path) },
    { ...floor, load: loadOf('node:http, the same bytes', '/') },
  ]);
  await echo.stop();
  return tableOf('Many clients: environment state', compared);
}

function loadOf(name: string, path: string, bodies: readonly string[] = []): Load {
  const method = bodies.length === 0 ? 'GET' : 'POST';
  return { name, method, path, bodies, keys: 0, connections: CLIENTS, rate: null };
}

async function visitAll(
  { processes, rounds, seconds }: LoadPlan,
  subjects: readonly Subject[],
  afterRound?: () => Promise<void>,
): Promise<readonly Compared[]> {
  const plan = { warmSeconds: WARM_SECONDS, rounds, seconds, processes };
  const found = await compare(subjects, plan, afterRound);
  return [...found].map(([{ load }, slices]) => {
    if (slices.some(({ refusedShare, errors }) => refusedShare > 0 || errors > 0))
      throw new Error(`${load.name}: requests failed`);
    return { label: load.name, slices };
  });
}

/** Makes a table in which the last row is the lowest possible cost. */
function tableOf(title: string, compared: readonly Compared[], notes: readonly string[] = []): Table {
  const floor = compared.at(-1)?.slices ?? [];
  const ofFloor = (own: readonly Slice[]) => ratios(own, floor, 'perSecond');
  return comparisonTable(title, compared, [{ head: 'req/s, of the floor', of: ofFloor }], notes);
}
