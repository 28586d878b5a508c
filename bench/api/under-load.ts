/** Creating responses and reading the state from many clients at once, beside the least that each could cost. */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from '#test/support/ports.ts';
import { Processes } from '../processes.ts';
import { median, pairedRatio } from '../statistics.ts';
import { NODE } from '../tools.ts';
import type { BenchDatabase } from './databases.ts';
import type { FloorOptions } from './floor.ts';
import { type Target, type Visit, visit } from './load.ts';
import { insertNatively } from './native.ts';
import { answer } from './operations.ts';
import type { Options } from './options.ts';
import { type Service, workspaceId } from './service.ts';

export interface LoadPlan extends Pick<Options, 'seconds' | 'rounds' | 'workers'> {
  readonly service: Service;
  readonly database: BenchDatabase;
  readonly surveyId: string;
  readonly userIds: readonly string[];
}

const NATIVE_CLIENTS = 20;
const FLOOR = join(import.meta.dirname, 'floor.ts');

export async function measureUnderLoad(plan: LoadPlan, say: (line: string) => void): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-bench-'));
  const processes = new Processes();
  const abandon = (): void => processes.killNow();
  process.once('exit', abandon);
  try {
    await measureCreate(plan, processes, folder, say);
    await measureState(plan, processes, folder, say);
  } finally {
    process.off('exit', abandon);
    await processes.stopAll();
    rmSync(folder, { recursive: true, force: true });
  }
}

async function measureCreate(
  plan: LoadPlan,
  processes: Processes,
  folder: string,
  say: (line: string) => void,
): Promise<void> {
  const { database, seconds, service, surveyId, userIds } = plan;
  const insert = await startFloor(plan, processes, 'insert', '');
  const anonymous = { surveyId, finished: true, data: answer };
  const url = `${service.address}/api/v1/client/${workspaceId}/responses`;
  const of = { pids: [service.pid], databasePids: database.pids() };
  const targets: readonly Target[] = [
    { name: 'create', url, bodies: [JSON.stringify(anonymous)], ...of },
    {
      name: 'create, of a contact',
      url,
      bodies: userIds.map((userId) => JSON.stringify({ ...anonymous, userId })),
      ...of,
    },
    { name: 'Fastify, one insert', bodies: [JSON.stringify(anonymous)], ...insert },
  ];
  const native: number[] = [];
  const visits = await visitAll(plan, targets, folder, async () => {
    const given = { database, surveyId, workspaceId, folder, seconds, clients: NATIVE_CLIENTS };
    const perSecond = await insertNatively(given);
    if (perSecond !== null) native.push(perSecond);
  });
  report(targets, visits, say);
  if (native.length > 0) {
    say(
      `  ${database.kind === 'sqlite' ? 'sqlite3' : 'pgbench'}, one insert: ${rate(median(native))} a second`,
    );
  }
}

async function measureState(
  plan: LoadPlan,
  processes: Processes,
  folder: string,
  say: (line: string) => void,
): Promise<void> {
  const { database, service } = plan;
  const url = `${service.address}/api/v1/client/${workspaceId}/environment`;
  const echo = await startFloor(plan, processes, 'echo', await (await fetch(url)).text());
  const targets: readonly Target[] = [
    { name: 'state', url, bodies: [], pids: [service.pid], databasePids: database.pids() },
    { name: 'node:http, the same bytes', bodies: [], ...echo },
  ];
  report(targets, await visitAll(plan, targets, folder), say);
}

async function startFloor(
  { database, workers }: LoadPlan,
  processes: Processes,
  kind: FloorOptions['kind'],
  body: string,
): Promise<Pick<Target, 'url' | 'pids' | 'databasePids'>> {
  const port = await freePort();
  const options: FloorOptions = { kind, port, workers, databaseUrl: database.url, workspaceId, body };
  const { pid } = await processes.start(`the floor (${kind})`, NODE, [FLOOR], {
    readyText: 'ready',
    env: { FLOOR: JSON.stringify(options) },
  });
  return {
    url: `http://127.0.0.1:${port}/`,
    pids: [pid],
    databasePids: kind === 'insert' ? database.pids() : [],
  };
}

/** A round more than asked for: the first one warms up, and does not count. */
async function visitAll(
  { rounds, seconds }: LoadPlan,
  targets: readonly Target[],
  folder: string,
  between: () => Promise<void> = async () => undefined,
): Promise<readonly (readonly Visit[])[]> {
  const visits = targets.map((): Visit[] => []);
  for (let round = 0; round <= rounds; round++) {
    for (const [i, target] of targets.entries()) {
      const found = await visit(target, round === 0 ? 2 : seconds, folder);
      if (round > 0) visits[i]?.push(found);
    }
    if (round > 0) await between();
  }
  return visits;
}

function report(
  targets: readonly Target[],
  visits: readonly (readonly Visit[])[],
  say: (line: string) => void,
): void {
  const floor = visits.at(-1) ?? [];
  for (const [i, { name }] of targets.entries()) {
    const own = visits[i] ?? [];
    const of = (pick: (visit: Visit) => number): number => median(own.map(pick));
    const {
      median: ratio,
      min,
      max,
    } = pairedRatio(
      own.map(({ perSecond }) => perSecond),
      floor.map(({ perSecond }) => perSecond),
    );
    say(
      [
        `  ${name.padEnd(26)} ${rate(of(({ perSecond }) => perSecond)).padStart(7)} a second`,
        `p50 ${of(({ p50Ms }) => p50Ms).toFixed(1)} ms, p99 ${of(({ p99Ms }) => p99Ms).toFixed(1)} ms`,
        `CPU ${of(({ servingUs }) => servingUs).toFixed(0)} + ${of(({ databaseUs }) => databaseUs).toFixed(0)} µs`,
        ...(i === targets.length - 1
          ? []
          : [`${ratio.toFixed(2)} (${min.toFixed(2)} to ${max.toFixed(2)}) of the last`]),
      ].join('; '),
    );
  }
}

function rate(perSecond: number): string {
  return Math.round(perSecond).toLocaleString('en');
}
