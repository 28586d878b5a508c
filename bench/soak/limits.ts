/**
 * In each minute, exceeds every limit with new identities, and compares the number of admitted requests with the limit.
 * The upstream counts the requests that it received. Nothing is sent shortly before and after the end of a minute, so
 * each request belongs to one window.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import type { Answer, Client } from '#bench/run/client.ts';
import { COUNT_HEADER, countsOf, replyTo } from '#bench/run/upstream.ts';
import { admittedMax, type LimitedRoute, type Minute, ROUTES, unexplainedDenials } from './model.ts';

const MINUTE_MS = 60_000;
/** In the last seconds of a minute no request is sent, so that all replies arrive before its end. */
const QUIET_MS = 4000;
/** Wait for the counts of the workers. They report to the supervisor once a second. */
const REPORTED_MS = 1500;
const AFTER_TURN_MS = 200;
const EXCESS = 1.2;
const BODY_BYTES = 20;
const LATENCIES_MAX = 200_000;
const EXAMPLES_MAX = 3;
const IDENTITIES_PER_ROUTE = 3;
/** Every third identity sends all its requests at once. */
const BURST_EVERY = 3;

/** Two clients. The connections of `plain` have only plain requests, those of `mixed` have requests of all kinds. */
export interface Clients {
  readonly plain: Client;
  readonly mixed: Client;
}

/** Counts replies by kind, also wrong ones. Keeps a few examples of the latter. */
export class SoakTally {
  readonly kinds = new Map<string, number>();
  readonly wrong = new Map<string, { count: number; readonly examples: string[] }>();
  overAdmitted = 0;
  /** Requests denied below the limit, and admitted above it, because the gateway decided without Redis. */
  deniedAlone = 0;
  admittedAlone = 0;
  /** Replies that arrived after the window of their request had ended. */
  late = 0;
  readonly latenciesMs: number[] = [];

  replied(kind: string): void {
    this.kinds.set(kind, (this.kinds.get(kind) ?? 0) + 1);
  }

  fault(kind: string, example: string): void {
    const known = this.wrong.get(kind) ?? { count: 0, examples: [] };
    known.count++;
    if (known.examples.length < EXAMPLES_MAX) known.examples.push(example);
    this.wrong.set(kind, known);
  }

  get replies(): number {
    return this.kinds.values().reduce((sum, count) => sum + count, 0);
  }

  get wrongReplies(): number {
    return this.wrong.values().reduce((sum, { count }) => sum + count, 0);
  }
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
  readonly route: LimitedRoute;
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
  const { degraded, tally, workers } = soak;
  const now = Date.now();
  const turnMs = Math.ceil((now + 1) / MINUTE_MS) * MINUTE_MS;
  const roomMs = turnMs - QUIET_MS - now;
  minutes++;
  if (roomMs > QUIET_MS) {
    const before = await degraded();
    const identities = ROUTES.flatMap(identitiesOf);
    await Promise.all(identities.map((identity, i) => drive(identity, i, { roomMs, turnMs }, soak)));
    await sleep(REPORTED_MS);
    const minute = { workers, degraded: (await degraded()) - before };
    const early = identities.flatMap((identity) => identity.early);
    const unexplained = unexplainedDenials(early.length, minute);
    tally.deniedAlone += early.length - unexplained;
    for (const text of early.slice(0, unexplained)) tally.fault('denied before the limit was reached', text);
    await compare(identities, minute, soak);
  }
  await sleep(Math.max(0, turnMs - Date.now()) + AFTER_TURN_MS);
}

function identitiesOf(route: LimitedRoute): Identity[] {
  return Array.from({ length: IDENTITIES_PER_ROUTE }, (_, i) => {
    addresses++;
    const address = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
    const isInvented = route.identifier === 'api-key' && i === IDENTITIES_PER_ROUTE - 1;
    return { name: `${minutes}-${i}-${route.path}`, route, address, isInvented, sent: 0, late: 0, early: [] };
  });
}

async function drive(
  identity: Identity,
  index: number,
  { roomMs, turnMs }: { readonly roomMs: number; readonly turnMs: number },
  { clients, tally }: Soak,
): Promise<void> {
  const { name, route, address, isInvented } = identity;
  const { method, example: path, limit } = route;
  const bytes = method === 'GET' ? 0 : BODY_BYTES;
  const isPlain = index % 2 === 0;
  const client = isPlain ? clients.plain : clients.mixed;
  const send = async (i: number): Promise<void> => {
    // Use five invented keys, which must share the budget of their address.
    const key = isInvented ? `fbk_invented_${name}_${i % 5}` : `fbk_valid_${name}`;
    const headers = {
      'x-forwarded-for': address,
      [COUNT_HEADER]: route.charged.map((policy) => `${policy}|${name}`).join(','),
      ...(route.identifier === 'api-key' ? { 'x-api-key': key } : {}),
    };
    const about = `${new Date().toISOString()} ${method} ${path} as ${name}`;
    identity.sent++;
    try {
      const answer = await client.send({ method, path, headers, bytes, isChunked: !isPlain && i % 2 === 0 });
      const text = `${about}: ${answer.status} ${answer.text.slice(0, 200)}`;
      const isDenied = answer.status === 429;
      tally.replied(isDenied ? 'denied' : 'admitted');
      if (tally.latenciesMs.length < LATENCIES_MAX) tally.latenciesMs.push(answer.latencyMs);
      if (isDenied && identity.sent <= limit) identity.early.push(text);
      const fault = isDenied
        ? denialFault(answer)
        : admissionFault(answer, identity, replyTo(method, path, bytes));
      if (fault !== null) tally.fault(fault, text);
    } catch (error) {
      tally.fault(`no reply: ${(error as Error).message}`, about);
    }
    if (Date.now() < turnMs) return;
    identity.late++;
    tally.late++;
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

function admissionFault(
  { status, headers, text }: Answer,
  { isInvented, route }: Identity,
  reply: string,
): string | null {
  const expected = isInvented ? 401 : 200;
  if (status !== expected) return `status ${status} instead of ${expected} or 429`;
  const remaining = Number(headers['x-ratelimit-remaining']);
  const reset = Number(headers['x-ratelimit-reset']);
  if (!(remaining >= 0 && remaining < Number(headers['x-ratelimit-limit']))) return 'wrong limit headers';
  if (!(reset >= 0 && reset <= route.windowSeconds)) return 'wrong x-ratelimit-reset';
  return text === reply ? null : 'the reply is about something else';
}

/** Compares the numbers of requests that the upstream received with the limits. */
async function compare(
  identities: readonly Identity[],
  minute: Minute,
  { tally, upstreamPort }: Soak,
): Promise<void> {
  const counts = await countsOf(upstreamPort);
  for (const { name, route, late } of identities) {
    const count = counts[`${route.path}|${name}`] ?? 0;
    const max = admittedMax(route.limit, minute) + late;
    tally.admittedAlone += Math.max(0, Math.min(count, max) - route.limit);
    if (count <= max) continue;
    tally.overAdmitted += count - max;
    tally.fault('admitted beyond the limit', `${name}: ${count} of ${max}`);
  }
}
