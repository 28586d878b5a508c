/** Sends hostile requests to every documented operation of the API, several at once, and counts the replies. */
import { join } from 'node:path';
import { isRecord } from '#api/schemas.ts';
import { apiKey, type Service, startService, workspaceId } from '#bench/api/service.ts';
import type { Processes } from '#bench/run/processes.ts';
import { Tally } from '#bench/run/tally.ts';
import { type Operation, readDescription } from '#test/support/description.ts';
import { fc } from '#test/support/fast-check.ts';
import { openHttp } from '#test/support/http-send.ts';
import { bodies, ids } from '#test/support/requests.ts';
import { createWorld, type Ids, logIn, type Request, type World } from '#test/support/world.ts';
import { hostileBodies } from './bodies.ts';
import type { Vitals } from './watch.ts';

const AT_ONCE = 4;
const BATCH = 8;

/** Starts the API on a new database, with watch.ts in its process. @param onVitals called once a second */
export function startHostileApi(processes: Processes, onVitals: (vitals: Vitals) => void): Promise<Service> {
  return startService(processes, {
    databaseUrl: `file:${join(processes.directory, 'floodgate.sqlite')}`,
    nodeFlags: ['--import', join(import.meta.dirname, 'watch.ts')],
    env: { DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1', LOG_LEVEL: 'error' },
    onMessage: (message) => onVitals(message as Vitals),
  });
}

interface SoakOptions {
  readonly origin: string;
  /** Time or number of rounds after which the soak ends. By default it does not end. */
  readonly seconds?: number;
  /** Number of rounds. In each round, every operation gets `batch` requests. */
  readonly rounds?: number;
  /** Number of requests to create together. Creating requests costs more than sending them. */
  readonly batch?: number;
  /** The same seed gives the same requests in the same order. */
  readonly seed: number;
}

interface Soaked {
  /** Replies by status. Faults are replies of 500, replies that differ from the description, and missing replies. */
  readonly tally: Tally;
  /** Number of operations that got a request. `described`: number of operations in the API description. */
  readonly operations: number;
  readonly described: number;
}

export async function soak(options: SoakOptions): Promise<Soaked> {
  const { origin, seed, seconds = Infinity, rounds = Infinity, batch = BATCH } = options;
  const http = openHttp(origin, AT_ONCE);
  const { text } = await http.send({ method: 'GET', url: '/api/docs/openapi.json' });
  const description = readDescription(JSON.parse(text));
  const world = createWorld({
    ...{ send: http.send, description, workspaceId, apiKey, bodies, session: await logIn(http.send) },
    // No program listens on this port, so deliveries fail at once.
    known: { url: 'http://127.0.0.1:9/hook' },
    ids: { ...ids, deliveryId: async () => 'c0000000000000000000000000' },
  });
  const tally = new Tally();
  const asked = new Set<string>();
  const untilMs = performance.now() + seconds * 1000;

  /** Yields a few requests for each operation, round after round. */
  async function* requests(): AsyncGenerator<[Operation, Request], void> {
    for (let round = 0; round < rounds; round++)
      for (const [at, operation] of description.operations.entries()) {
        const sampling = { seed: seed + round * 10_007 + at, numRuns: batch };
        for (const request of await requestsTo(operation, world, sampling)) {
          if (performance.now() > untilMs) return;
          yield [operation, request];
        }
      }
  }
  const pending = requests();
  const worker = async (): Promise<void> => {
    for await (const [operation, request] of pending) {
      const about = `${operation.name} with ${String(request.body ?? '').slice(0, 300)} at ${request.url.slice(0, 200)}`;
      try {
        const reply = await http.send(request);
        tally.replied(String(reply.status));
        asked.add(operation.name);
        if (reply.status === 500) tally.fault('500', about);
        for (const problem of description.problemsOf(operation, reply)) tally.fault(String(problem), about);
      } catch (error) {
        tally.fault(`no reply: ${error}`, about);
      }
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, worker));
  await http.close();
  return { tally, operations: asked.size, described: description.operations.length };
}

async function requestsTo(
  operation: Operation,
  world: World,
  sampling: { readonly seed: number; readonly numRuns: number },
): Promise<readonly Request[]> {
  const { schemas } = world.options.description;
  const ids = await freshIds(world, operation);
  const headers = world.credentialsFor(operation);
  const valid = world.bodyFor(operation, ids);
  const names = operation.parameters.filter((one) => one.in === 'query').map(({ name }) => String(name));
  const paths = fc.sample(fc.option(pathPart(), { freq: 4 }), sampling);
  const hostile = hostileBodies(operation, { schemas, valid: isRecord(valid) ? valid : {} });
  const texts = operation.method === 'GET' ? [] : fc.sample(hostile, sampling);
  return fc.sample(queryOf(names), sampling).map((query, at) => {
    const part = paths[at] ?? null;
    const given = part === null ? ids : Object.fromEntries(Object.keys(ids).map((name) => [name, part]));
    const url = world.urlOf(operation, given, query);
    return { method: operation.method, url, headers, body: texts[at] };
  });
}

/** Creates rows for the ids in the path. If the API refuses to create more rows, the path has ids of no rows. */
async function freshIds(world: World, operation: Operation): Promise<Ids> {
  try {
    return await world.idsFor(operation);
  } catch {
    return { workspaceId: world.options.workspaceId };
  }
}

function queryOf(names: readonly string[]): fc.Arbitrary<Ids> {
  if (names.length === 0) return fc.constant({});
  const value = fc.oneof(
    fc.string({ unit: 'grapheme', maxLength: 50 }),
    fc.integer().map(String),
    fc.constant('1'),
  );
  return fc.dictionary(fc.constantFrom(...names), value, { maxKeys: 3 });
}

function pathPart(): fc.Arbitrary<string> {
  return fc.oneof(
    fc.string({ unit: 'grapheme', minLength: 1, maxLength: 40 }),
    fc.constantFrom('c0000000000000000000000000', '..', '\u0000', '%00', 'a'.repeat(600), "' or 1=1"),
  );
}
