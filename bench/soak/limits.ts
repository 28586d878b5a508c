/**
 * Drives every limit over its edge, minute by minute, each with identities of its own, and compares what came through
 * with the model: exactly the limit, and never more. The upstream counts what it saw. Nothing is sent around the turn
 * of a minute, so that no request belongs to two windows.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { COUNT_HEADER, COUNTS_PATH } from '../abuse/upstream-paths.ts';
import { admittedMax, unexplainedDenials } from './alone.ts';
import type { Answer, Client } from './request.ts';
import type { LimitedRoute } from './routes.ts';
import type { Tally } from './tally.ts';

const MINUTE_MS = 60_000;
/** Before the turn of a minute: whatever is on its way arrives. */
const QUIET_MS = 4000;
/** Processes tell the supervisor once a second what they have counted. */
const TOLD_MS = 1500;
const AFTER_TURN_MS = 200;
/** Beyond the limit. */
const EXCESS = 1.2;
/** One identity in so many sends all at once. */
const BURST_EVERY = 3;

type Credential = 'valid' | 'invented';

interface Identity {
  readonly name: string;
  readonly route: LimitedRoute;
  readonly address: string;
  readonly credential: Credential;
  sent: number;
  /** Answered after the turn of the minute, so perhaps decided in the next window: the machine had stood still. */
  late: number;
}

export interface MinuteContext {
  readonly client: Client;
  readonly upstreamPort: number;
  readonly tally: Tally;
  readonly routes: readonly LimitedRoute[];
  readonly identitiesPerRoute: number;
  /** Processes of the gateway. */
  readonly workers: number;
  /** Requests that the gateway has decided without Redis so far. */
  readonly degraded: () => Promise<number>;
}

let minutes = 0;
let addresses = 0;

interface RunningMinute extends MinuteContext {
  /** When it ends, in milliseconds since the epoch. */
  readonly turnMs: number;
  /** Denials before a limit was reached. */
  readonly early: string[];
}

/** From now to the end of this minute of the clock; returns when the next one has begun. */
export async function driveMinute(context: MinuteContext): Promise<void> {
  const now = Date.now();
  const turnMs = Math.ceil((now + 1) / MINUTE_MS) * MINUTE_MS;
  const roomMs = turnMs - QUIET_MS - now;
  minutes++;
  if (roomMs > QUIET_MS) {
    const degradedBefore = await context.degraded();
    const early: string[] = [];
    const identities = context.routes.flatMap((route) => identitiesOf(route, context.identitiesPerRoute));
    await Promise.all(
      identities.map((identity, i) =>
        drive(identity, roomMs, i % BURST_EVERY === 0, { ...context, turnMs, early }),
      ),
    );
    await sleep(TOLD_MS);
    const degraded = (await context.degraded()) - degradedBefore;
    judgeEarly(early, degraded, context);
    await compare(identities, degraded, context);
  }
  await sleep(Math.max(0, turnMs - Date.now()) + AFTER_TURN_MS);
}

function identitiesOf(route: LimitedRoute, count: number): Identity[] {
  return Array.from({ length: count }, (_, i) => {
    addresses++;
    const address = `10.${(addresses >> 16) & 255}.${(addresses >> 8) & 255}.${addresses & 255}`;
    const credential = route.identifier === 'api-key' && i === count - 1 ? 'invented' : 'valid';
    return { name: `${minutes}-${route.policy}-${i}`, route, address, credential, sent: 0, late: 0 };
  });
}

async function drive(
  identity: Identity,
  roomMs: number,
  isBurst: boolean,
  context: RunningMinute,
): Promise<void> {
  const count = Math.ceil(identity.route.limit * EXCESS) + 2;
  const startMs = Math.random() * roomMs * 0.5;
  const spanMs = isBurst ? 0 : roomMs * 0.5;
  await Promise.all(
    Array.from({ length: count }, async (_, i) => {
      await sleep(startMs + (spanMs * i) / count);
      await sendOne(identity, i, context);
    }),
  );
}

async function sendOne(identity: Identity, i: number, context: RunningMinute): Promise<void> {
  const { client, tally } = context;
  const { route, name } = identity;
  const headers: Record<string, string> = {
    'x-forwarded-for': identity.address,
    [COUNT_HEADER]: route.charged.map((policy) => `${policy}|${name}`).join(','),
  };
  // Of an invented kind there are many, and they share what their address has.
  if (identity.credential === 'invented') headers['x-api-key'] = `fbk_invented_${name}_${i % 5}`;
  else if (route.identifier === 'api-key') headers['x-api-key'] = `fbk_valid_${name}`;
  const body = route.method === 'GET' ? null : Buffer.from('{"soak":true}');
  identity.sent++;
  const where = `${new Date().toISOString()} ${route.method} ${route.path} as ${name}`;
  try {
    const answer = await client.send(route.method, route.path, headers, body);
    tally.answered(answer.status === 429 ? 'denied' : 'limited route', answer.latencyMs);
    const said = `${where}: ${answer.status} ${answer.text.slice(0, 200)}`;
    const fault = judge(identity, answer, context, said);
    if (fault !== null) tally.fault(fault, said);
  } catch (error) {
    tally.fault(`no answer: ${(error as Error).message}`, where);
  }
  if (Date.now() >= context.turnMs) {
    identity.late++;
    tally.late++;
  }
}

/** @returns what is wrong with it */
function judge(
  identity: Identity,
  answer: Answer,
  { tally, early }: RunningMinute,
  said: string,
): string | null {
  const { route, credential, sent } = identity;
  const { status, headers, text } = answer;
  if (status === 429) {
    tally.denied++;
    const seconds = Number(headers['retry-after']);
    if (headers['x-gateway-ratelimited'] !== 'true') return '429 without x-gateway-ratelimited';
    if (!(seconds >= 1 && seconds <= 3600)) return '429 without a Retry-After within the window';
    if (!hasMessage(text)) return '429 without message and details';
    if (sent <= route.limit && credential !== 'invented') early.push(said);
    return null;
  }
  const expected = credential === 'invented' ? 401 : 200;
  if (status !== expected) return `status ${status} instead of ${expected} or 429`;
  tally.admitted++;
  const remaining = Number(headers['x-ratelimit-remaining']);
  const reset = Number(headers['x-ratelimit-reset']);
  if (!(remaining >= 0 && remaining < Number(headers['x-ratelimit-limit']))) return 'wrong limit headers';
  if (!(reset >= 0 && reset <= route.windowSeconds)) return 'wrong x-ratelimit-reset';
  return text.includes(`"path":"${route.path}"`) ? null : 'the answer is about something else';
}

function hasMessage(text: string): boolean {
  try {
    const body: unknown = JSON.parse(text);
    return typeof body === 'object' && body !== null && 'message' in body && 'details' in body;
  } catch (error) {
    if (error instanceof SyntaxError) return false;
    throw error;
  }
}

function judgeEarly(early: readonly string[], degraded: number, { tally, workers }: MinuteContext): void {
  const unexplained = unexplainedDenials(early.length, { workers, degraded });
  tally.deniedAlone += early.length - unexplained;
  for (const said of early.slice(0, unexplained)) tally.fault('denied before the limit was reached', said);
}

/** What the upstream saw against what the limits allow. */
async function compare(
  identities: readonly Identity[],
  degraded: number,
  { tally, upstreamPort, workers }: MinuteContext,
): Promise<void> {
  const response = await fetch(`http://127.0.0.1:${upstreamPort}${COUNTS_PATH}`, {
    signal: AbortSignal.timeout(5000),
  });
  const seen = (await response.json()) as Readonly<Record<string, number>>;
  for (const { name, route, late } of identities) {
    const count = seen[`${route.policy}|${name}`] ?? 0;
    const max = admittedMax(route.limit, { workers, degraded }) + late;
    tally.admittedAlone += Math.max(0, Math.min(count, max) - route.limit);
    if (count <= max) continue;
    tally.overAdmitted += count - max;
    tally.fault('admitted beyond the limit', `${name}: ${count} of ${max}`);
  }
}
