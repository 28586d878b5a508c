/**
 * In each minute, exceeds every limit with new identities, and compares the number of admitted requests with the limit.
 * The upstream counts the requests that it received. Nothing is sent shortly before and after the end of a minute, so
 * each request belongs to one window.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Client } from '#bench/run/client.ts';
import { COUNT_HEADER, countsOf, replyTo } from '#bench/run/upstream.ts';
import { EDGE_TABLE, type EdgeRow, examplePath } from '#test/support/edge-table.ts';
import type { SoakTally } from './tally.ts';

const MINUTE_MS = 60_000;
/** In the last seconds of a minute no request is sent, so that all replies arrive before its end. */
const QUIET_MS = 4000;
/** Wait for the counts of the workers. They report to the supervisor once a second. */
const REPORTED_MS = 1500;
const AFTER_TURN_MS = 200;
const EXCESS = 1.2;
const BODY_BYTES = 20;
const IDENTITIES_PER_ROUTE = 3;
/** Every third identity sends all its requests at once. */
const BURST_EVERY = 3;

/** Two clients. The connections of `plain` have only plain requests, those of `mixed` have requests of all kinds. */
export interface Clients {
  readonly plain: Client;
  readonly mixed: Client;
}

interface Soak {
  readonly clients: Clients;
  readonly upstreamPort: number;
  readonly tally: SoakTally;
  readonly workers: number;
  /** Returns the number of requests that the gateway has decided without Redis so far. */
  readonly degraded: () => Promise<number>;
}

interface Identity {
  readonly name: string;
  readonly row: EdgeRow;
  readonly address: string;
  /** Whether the upstream rejects the API key of this identity. */
  readonly isInvented: boolean;
  sent: number;
  /**
   * Replies that arrived after the end of the minute, as after a pause of the machine. They may belong to the next
   * window.
   */
  late: number;
  /** Denials before the limit was reached. */
  readonly early: string[];
}

let minutes = 0;
let addresses = 0;

/** Exceeds all limits once. Runs until the next minute of the clock has begun. */
export async function driveMinute(soak: Soak): Promise<void> {
  const { degraded, tally, upstreamPort, workers } = soak;
  const now = Date.now();
  const turnMs = Math.ceil((now + 1) / MINUTE_MS) * MINUTE_MS;
  const roomMs = turnMs - QUIET_MS - now;
  minutes++;
  if (roomMs > QUIET_MS) {
    const before = await degraded();
    const identities = EDGE_TABLE.flatMap(identitiesOf);
    await Promise.all(identities.map((identity, i) => drive(identity, i, { roomMs, turnMs }, soak)));
    await sleep(REPORTED_MS);
    // Redis is disturbed, and on a busy machine its reply may come too late. A request that is decided without it may be
    // denied too early: another process still had a part of the limit left, or Redis had charged the request.
    const alone = (await degraded()) - before;
    const early = identities.flatMap((identity) => identity.early);
    const unexplained = Math.max(0, early.length - alone);
    tally.deniedAlone += early.length - unexplained;
    for (const text of early.slice(0, unexplained)) tally.fault('denied before the limit was reached', text);
    const counts = await countsOf(upstreamPort);
    for (const { name, row, late } of identities) {
      const count = counts[name] ?? 0;
      const max = admittedMax(row.limit, workers, alone) + late;
      tally.late += late;
      tally.admittedAlone += Math.max(0, Math.min(count, max) - row.limit);
      if (count <= max) continue;
      tally.overAdmitted += count - max;
      tally.fault('admitted beyond the limit', `${name}: ${count} of ${max}`);
    }
  }
  await sleep(Math.max(0, turnMs - Date.now()) + AFTER_TURN_MS);
}

function identitiesOf(row: EdgeRow): Identity[] {
  return Array.from({ length: IDENTITIES_PER_ROUTE }, (_, i) => {
    addresses++;
    const address = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
    const isInvented = row.identifier === 'api-key' && i === IDENTITIES_PER_ROUTE - 1;
    return { name: `${minutes}-${i}-${row.path}`, row, address, isInvented, sent: 0, late: 0, early: [] };
  });
}

async function drive(
  identity: Identity,
  index: number,
  { roomMs, turnMs }: { readonly roomMs: number; readonly turnMs: number },
  { clients, tally }: Soak,
): Promise<void> {
  const { name, row, address, isInvented } = identity;
  const { limit, identifier } = row;
  const [method = 'GET'] = row.methods;
  const path = examplePath(row);
  const bytes = method === 'GET' ? 0 : BODY_BYTES;
  const isPlain = index % 2 === 0;
  const client = isPlain ? clients.plain : clients.mixed;
  const send = async (i: number): Promise<void> => {
    // Use five invented keys, which must share the budget of their address.
    const key = isInvented ? `fbk_invented_${name}_${i % 5}` : `fbk_valid_${name}`;
    const headers = {
      ...{ 'x-forwarded-for': address, [COUNT_HEADER]: name },
      ...(identifier === 'api-key' ? { 'x-api-key': key } : {}),
    };
    const about = `${new Date().toISOString()} ${method} ${path} as ${name}`;
    identity.sent++;
    try {
      const answer = await client.send({ method, path, headers, bytes, isChunked: !isPlain && i % 2 === 0 });
      const text = `${about}: ${answer.status} ${answer.text.slice(0, 200)}`;
      const isDenied = answer.status === 429;
      tally.replied(isDenied ? 'denied' : 'admitted', answer.latencyMs);
      if (isDenied && identity.sent <= limit) identity.early.push(text);
      const fault = isDenied
        ? denialFault(answer)
        : admissionFault(answer, identity, replyTo(method, path, bytes));
      if (fault !== null) tally.fault(fault, text);
    } catch (error) {
      tally.fault(`no reply: ${(error as Error).message}`, about);
    }
    if (Date.now() >= turnMs) identity.late++;
  };
  const count = Math.ceil(limit * EXCESS) + 2;
  const startMs = Math.random() * roomMs * 0.5;
  const spanMs = index % BURST_EVERY === 0 ? 0 : roomMs * 0.5;
  const one = (_: unknown, i: number) => sleep(startMs + (spanMs * i) / count).then(() => send(i));
  await Promise.all(Array.from({ length: count }, one));
}

function denialFault({ headers, text }: Answer): string | null {
  const seconds = Number(headers['retry-after']);
  if (headers['x-gateway-ratelimited'] !== 'true') return '429 without x-gateway-ratelimited';
  if (!(seconds >= 1 && seconds <= 3600)) return '429 without a Retry-After within the window';
  return /^\{.*"message":.*\}$/.test(text) && text.includes('"details":')
    ? null
    : '429 without message and details';
}

function admissionFault({ status, headers, text }: Answer, identity: Identity, reply: string): string | null {
  const expected = identity.isInvented ? 401 : 200;
  if (status !== expected) return `status ${status} instead of ${expected} or 429`;
  const remaining = Number(headers['x-ratelimit-remaining']);
  const reset = Number(headers['x-ratelimit-reset']);
  if (!(remaining >= 0 && remaining < Number(headers['x-ratelimit-limit']))) return 'wrong limit headers';
  if (!(reset >= 0 && reset <= identity.row.windowSeconds)) return 'wrong x-ratelimit-reset';
  return text === reply ? null : 'the reply is about something else';
}

/**
 * Returns the maximum number of requests that may be admitted. A process that decides without Redis, and has not seen a
 * counter before, does not know how much of the limit is used. So it admits its share of the limit again
 * (docs/operating.md). A single process knows all counters.
 *
 * @param degraded number of requests that were decided without Redis in this minute
 */
export function admittedMax(limit: number, workers: number, degraded: number): number {
  return degraded === 0 ? limit : 2 * limit - Math.floor(limit / workers);
}
