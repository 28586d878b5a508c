/**
 * The well-behaved visitor. It sends requests at an even rate, even if earlier ones have no reply yet. Most of them use
 * a few kept-alive connections, and every fourth uses a new one. A reply is a success if it has status 200 and belongs
 * to the request.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { type Ask, Client, type ClientOptions } from '#bench/run/client.ts';
import { quantile } from '#bench/run/statistics.ts';
import { replyTo, VISITOR_HEADER } from '#bench/run/upstream.ts';
import { ATTACKER_ADDRESS } from './attacker.ts';
import type { Attack } from './attacks.ts';

const ADDRESS = '127.0.0.3';
const NEW_CONNECTION_EVERY = 4;
/** One newcomer in this time. It is no divisor of a window, so that newcomers arrive at all times of a window. */
const NEWCOMER_EVERY_MS = 970;

type Step = Pick<Ask, 'method' | 'path' | 'bytes'> & { readonly hasKey?: boolean };

const KEYED: readonly Step[] = [
  { method: 'GET', path: '/api/v1/management/surveys', hasKey: true },
  { method: 'GET', path: '/api/v1/webhooks', hasKey: true },
  { method: 'PUT', path: '/api/v1/management/responses/r1', bytes: 500, hasKey: true },
  { method: 'POST', path: '/api/v1/webhooks', bytes: 300, hasKey: true },
];
const KEYLESS: readonly Step[] = [
  { method: 'GET', path: '/api/v1/client/bench/environment' },
  { method: 'POST', path: '/api/v1/client/bench/responses', bytes: 1000 },
  { method: 'GET', path: '/s/survey' },
  { method: 'POST', path: '/api/v1/client/bench/displays', bytes: 300 },
];
const BOTH = KEYED.flatMap((step, i) => [step, KEYLESS[i] ?? step]);
const UPLOAD: Step = { method: 'POST', path: '/api/v2/client/bench/responses', bytes: 65_536 };
const SITE: Step = { method: 'GET', path: '/bench/swarm' };

interface Visitor {
  readonly address: string;
  readonly key: string;
  readonly perSecond: number;
  readonly steps: readonly Step[];
  /** Every so many requests, one is an upload of 64 KB. 0: no uploads. */
  readonly uploadEvery: number;
  /** The addresses that it names in turn, as a proxy. */
  readonly clients?: readonly string[];
}

const STRANGER: Visitor = {
  ...{ address: ADDRESS, key: 'fbk_valid_visitor', perSecond: 40, steps: BOTH, uploadEvery: 40 },
};
/**
 * Sends fewer than the 100 requests a minute that the shipped policies allow a key, even if one of them is repeated.
 */
const NEAR: Visitor = { ...STRANGER, address: ATTACKER_ADDRESS, perSecond: 19, uploadEvery: 0 };

export const REGULARS = Array.from({ length: 200 }, (_, i) => `192.0.2.${i}`);

export const VISITORS: Readonly<Record<NonNullable<Attack['visitor']>, Visitor>> = {
  stranger: STRANGER,
  neighbour: { ...NEAR, steps: KEYED },
  guest: { ...NEAR, steps: KEYLESS },
  regulars: { ...STRANGER, perSecond: 100, steps: [SITE], uploadEvery: 0, clients: REGULARS },
};

/**
 * Sends fewer requests, and sends them directly to an upstream, to measure how much the machine disturbs the figures.
 */
export const CONTROL: Visitor = { ...STRANGER, key: 'fbk_valid_control', perSecond: 20, uploadEvery: 0 };

/** Four visitors with their own addresses. Each uses every route 25 times, which is below all limits. */
export const WARM_UP: readonly Visitor[] = [1, 2, 3, 4].map((i) => ({
  ...STRANGER,
  ...{ address: `127.0.1.${i}`, key: `fbk_valid_warm${i}`, perSecond: 200 },
}));

type Place = Pick<ClientOptions, 'ports' | 'timeoutMs'>;

export interface VisitFigures {
  readonly sent: number;
  /** Share of successful requests, from 0 to 1. */
  readonly success: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Number of failed requests by reason. */
  readonly failures: Readonly<Record<string, number>>;
}

export async function visit(visitor: Visitor, place: Place, seconds: number): Promise<VisitFigures> {
  const { address, key, perSecond, steps, uploadEvery, clients = [] } = visitor;
  const client = new Client({ ...place, address });
  const latenciesMs: number[] = [];
  const failures: Record<string, number> = {};
  const sendStep = async (step: Step, i: number): Promise<void> => {
    const { method, path, bytes = 0, hasKey = false } = step;
    const headers = {
      [VISITOR_HEADER]: '1',
      ...(hasKey ? { 'x-api-key': key } : {}),
      ...(clients.length > 0 ? { 'x-forwarded-for': clients[i % clients.length] ?? '' } : {}),
    };
    const isAlone = i % NEW_CONNECTION_EVERY === 0;
    const failure = await client.send({ method, path, bytes, headers, isAlone }).then(
      ({ status, text, latencyMs }) => {
        if (status !== 200) return `status ${status}`;
        if (text !== replyTo(method, path, bytes)) return 'wrong reply';
        latenciesMs.push(latencyMs);
        return null;
      },
      (error: NodeJS.ErrnoException) => error.code ?? error.message,
    );
    if (failure === null) return;
    const reason = `${failure} (${method}${step === UPLOAD ? ' upload' : ''})`;
    failures[reason] = (failures[reason] ?? 0) + 1;
  };

  const sent = Math.round(seconds * perSecond);
  await evenly(sent, 1000 / perSecond, (i) => {
    const isUpload = uploadEvery > 0 && i % uploadEvery === uploadEvery - 1;
    return sendStep(isUpload ? UPLOAD : (steps[i % steps.length] ?? UPLOAD), i);
  });
  client.close();
  return {
    ...{ sent, success: latenciesMs.length / sent, failures },
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  };
}

/** Newcomers who come back once, when Retry-After says. @returns the share of them that was served */
export async function visitAsNewcomers(place: Place, seconds: number): Promise<number> {
  const client = new Client({ ...place, address: ADDRESS });
  let served = 0;
  // The last ones have time for their second try.
  const newcomers = Math.ceil((seconds * 800) / NEWCOMER_EVERY_MS);
  await evenly(newcomers, NEWCOMER_EVERY_MS, async (i) => {
    const headers = { 'x-forwarded-for': `198.51.100.${i}` };
    const ask = () => client.send({ ...SITE, headers }).catch(() => null);
    const first = await ask();
    if (first?.status === 429) await sleep(Number(first.headers['retry-after']) * 1000);
    if (first?.status === 200 || (await ask())?.status === 200) served++;
  });
  client.close();
  return served / newcomers;
}

/** Begins one action after the other at an even rate, and waits until all have ended. */
async function evenly(times: number, everyMs: number, act: (i: number) => Promise<void>): Promise<void> {
  const running: Promise<void>[] = [];
  const began = performance.now();
  for (let i = 0; i < times; i++) {
    const waitMs = began + i * everyMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    running.push(act(i));
  }
  await Promise.all(running);
}
