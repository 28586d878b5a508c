/** Creates responses and reads the state with many clients at once, in turn with the least that each can cost. */
import { startEcho } from '#bench/peers/echo.ts';
import { workspaceId } from '#bench/run/api.ts';
import { comparisonTable } from '#bench/run/comparison.ts';
import type { Load } from '#bench/run/load.ts';
import { inTurn, measure, type Slice, type Subject } from '#bench/run/measure.ts';
import type { Processes } from '#bench/run/processes.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { median } from '#bench/run/statistics.ts';
import { wrk } from '#bench/run/wrk.ts';
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

interface Target {
  readonly subject: Subject;
  readonly load: Load;
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
  const origin = `http://127.0.0.1:${port}`;
  const targets = [
    targetOf({ ...api, name: 'create' }, path, anonymous),
    targetOf({ ...api, name: 'create for a contact' }, path, known),
    targetOf({ ...api, name: 'Fastify, one insert', origin, pids: [floor.pid] }, '/', anonymous),
  ];
  const native: number[] = [];
  const slices = await visitAll(plan, targets, async () => {
    const found = await insertNatively(database.url, surveyId, seconds, processes.directory);
    if (found !== null) native.push(found);
  });
  await floor.stop();
  const program = database.url.startsWith('file:') ? 'sqlite3' : 'pgbench';
  const notes = native.length === 0 ? [] : [`${program}, one insert: ${rounded(median(native), 0)} a second`];
  return tableOf('Many clients: create a response', targets, slices, notes);
}

async function measureState(plan: LoadPlan): Promise<Table> {
  const { processes, database, service, workers } = plan;
  const path = `/api/v1/client/${workspaceId}/environment`;
  const body = await (await fetch(`${service.origin}${path}`)).text();
  const port = await freePort();
  const echo = await startEcho(processes, { port, workers, body });
  const floor = { origin: `http://127.0.0.1:${port}`, pids: [echo.pid], store: null };
  const { origin, pid } = service;
  const targets = [
    targetOf({ name: 'state', origin, pids: [pid], store: { pids: database.pids } }, path),
    targetOf({ ...floor, name: 'node:http, the same bytes' }),
  ];
  const slices = await visitAll(plan, targets);
  await echo.stop();
  return tableOf('Many clients: environment state', targets, slices);
}

function targetOf(subject: Subject, path = '/', bodies: readonly string[] = []): Target {
  const name = subject.name.replaceAll(/\W+/g, '-');
  const method = bodies.length === 0 ? 'GET' : 'POST';
  return { subject, load: { name, method, path, bodies, keys: 0, connections: CLIENTS } };
}

async function visitAll(
  { processes, rounds, seconds }: LoadPlan,
  targets: readonly Target[],
  afterRound = async (): Promise<void> => undefined,
): Promise<readonly (readonly Slice[])[]> {
  const visit = async ({ subject, load }: Target, duration: number): Promise<Slice> => {
    const slice = await measure(subject, () => wrk(load, subject.origin, duration, processes.directory));
    if (slice.refusedShare > 0 || slice.errors > 0) throw new Error(`${subject.name}: requests failed`);
    return slice;
  };
  for (const target of targets) await visit(target, WARM_SECONDS);
  let visits = 0;
  return inTurn(targets, rounds, async (target) => {
    const slice = await visit(target, seconds);
    visits += 1;
    if (visits % targets.length === 0) await afterRound();
    return slice;
  });
}

/** The last of the targets is the floor. */
function tableOf(
  title: string,
  targets: readonly Target[],
  slices: readonly (readonly Slice[])[],
  notes: readonly string[] = [],
): Table {
  const floor = slices.at(-1) ?? [];
  const ofFloor = { head: 'req/s, of the floor', measure: 'perSecond' } as const;
  return comparisonTable(
    title,
    targets.map(({ subject }, i) => ({ label: subject.name, slices: slices[i] ?? [] })),
    [{ ...ofFloor, of: (own) => [own, floor] }],
    notes,
  );
}
