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
import type { VisitorKind } from './scenario.ts';

const ADDRESS = '127.0.0.3';
const NEW_CONNECTION_EVERY = 4;

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

interface Visitor {
  readonly address: string;
  readonly key: string;
  readonly perSecond: number;
  readonly steps: readonly Step[];
  /** Every so many requests, one is an upload of 64 KB. 0: no uploads. */
  readonly uploadEvery: number;
}

const STRANGER: Visitor = {
  ...{ address: ADDRESS, key: 'fbk_valid_visitor', perSecond: 40, steps: BOTH, uploadEvery: 40 },
};
/**
 * Sends fewer than the 100 requests a minute that the shipped policies allow a key, even if one of them is repeated.
 */
const NEAR: Visitor = { ...STRANGER, address: ATTACKER_ADDRESS, perSecond: 19, uploadEvery: 0 };

export const VISITORS: Readonly<Record<VisitorKind, Visitor>> = {
  stranger: STRANGER,
  neighbour: { ...NEAR, steps: KEYED },
  guest: { ...NEAR, steps: KEYLESS },
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

export interface VisitFigures {
  readonly sent: number;
  /** Share of successful requests, from 0 to 1. */
  readonly success: number;
  readonly p50Ms: number;
  readonly p99Ms: number;
  /** Number of failed requests by reason. */
  readonly failures: Readonly<Record<string, number>>;
}

export async function visit(
  visitor: Visitor,
  place: Pick<ClientOptions, 'port' | 'timeoutMs'>,
  seconds: number,
): Promise<VisitFigures> {
  const { address, key, perSecond, steps, uploadEvery } = visitor;
  const client = new Client({ ...place, address });
  const latenciesMs: number[] = [];
  const failures: Record<string, number> = {};
  const send = async (step: Step, isAlone: boolean): Promise<void> => {
    const { method, path, bytes = 0, hasKey = false } = step;
    const headers = { [VISITOR_HEADER]: '1', ...(hasKey ? { 'x-api-key': key } : {}) };
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

  const running: Promise<void>[] = [];
  const sent = Math.round(seconds * perSecond);
  const began = performance.now();
  for (let i = 0; i < sent; i++) {
    const waitMs = began + (i * 1000) / perSecond - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const isUpload = uploadEvery > 0 && i % uploadEvery === uploadEvery - 1;
    const step = isUpload ? UPLOAD : (steps[i % steps.length] ?? UPLOAD);
    running.push(send(step, i % NEW_CONNECTION_EVERY === 0));
  }
  await Promise.all(running);
  client.close();
  return {
    ...{ sent, success: latenciesMs.length / sent, failures },
    p50Ms: quantile(latenciesMs, 0.5),
    p99Ms: quantile(latenciesMs, 0.99),
  };
}
