/**
 * The polite client: a request at its own moment, whatever became of those before, over a few kept-alive connections
 * and now and then a new one. An answer counts when it has status 200 and is about what was asked.
 */
import { Agent } from 'node:http';
import { Agent as TlsAgent } from 'node:https';
import { setTimeout as sleep } from 'node:timers/promises';
import { ATTACKER_ADDRESS, VICTIM_ADDRESS } from './addresses.ts';
import { ask, type Step } from './ask.ts';
import type { VictimKind } from './scenario.ts';

const UPLOAD_BYTES = 65_536;
/** One in so many goes over a connection of its own. */
const NEW_CONNECTION_EVERY = 4;

export interface VictimResult {
  readonly sent: number;
  readonly succeeded: number;
  readonly latenciesMs: readonly number[];
  /** Reason -> how many. */
  readonly failures: Readonly<Record<string, number>>;
  /** Sent once more, as the kept-alive connection had just been closed: what every HTTP client does. */
  readonly repeated: number;
}

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
const UPLOAD: Step = { method: 'POST', path: '/api/v2/client/bench/responses', bytes: UPLOAD_BYTES };

export interface Victim {
  readonly address: string;
  readonly key: string;
  readonly isTls?: boolean;
  readonly perSecond: number;
  readonly steps: readonly Step[];
  /** One in so many is an upload of 64 KB; 0: none. */
  readonly uploadEvery: number;
}

export function victimOf(kind: VictimKind, key: string): Victim {
  // Below the 100 a minute that the shipped file allows a key, also when one of them is sent twice.
  const near = { address: ATTACKER_ADDRESS, key, perSecond: 19, uploadEvery: 0 };
  switch (kind) {
    case 'stranger': {
      const steps = KEYED.flatMap((step, i) => [step, KEYLESS[i] ?? step]);
      return { address: VICTIM_ADDRESS, key, perSecond: 40, steps, uploadEvery: 40 };
    }
    case 'neighbour':
      return { ...near, steps: KEYED };
    case 'visitor':
      return { ...near, steps: KEYLESS };
    default:
      return kind satisfies never;
  }
}

export async function visit(victim: Victim, port: number, seconds: number): Promise<VictimResult> {
  const isTls = victim.isTls === true;
  const agent = new (isTls ? TlsAgent : Agent)({ keepAlive: true, maxSockets: 64 });
  const result = {
    sent: 0,
    succeeded: 0,
    repeated: 0,
    latenciesMs: [] as number[],
    failures: {} as Record<string, number>,
  };
  const running = new Set<Promise<void>>();
  const began = performance.now();
  const total = Math.round(seconds * victim.perSecond);
  for (let i = 0; i < total; i++) {
    const dueMs = began + (i * 1000) / victim.perSecond;
    const waitMs = dueMs - performance.now();
    if (waitMs > 0) await sleep(waitMs);
    const step = stepOf(victim, i);
    const isNew = i % NEW_CONNECTION_EVERY === 0;
    result.sent++;
    const from = { address: victim.address, key: victim.key, port, isTls, agent: isNew ? null : agent };
    const one = ask(from, step)
      .then(({ failure, repeated, latencyMs }) => {
        if (repeated) result.repeated++;
        if (failure === null) {
          result.succeeded++;
          result.latenciesMs.push(latencyMs);
        } else {
          const reason = `${failure} (${step.method}${step.bytes === UPLOAD_BYTES ? ' upload' : ''})`;
          result.failures[reason] = (result.failures[reason] ?? 0) + 1;
        }
      })
      .finally(() => running.delete(one));
    running.add(one);
  }
  await Promise.all(running);
  agent.destroy();
  return result;
}

function stepOf({ steps, uploadEvery }: Victim, i: number): Step {
  if (uploadEvery > 0 && i % uploadEvery === uploadEvery - 1) return UPLOAD;
  return steps[i % steps.length] ?? UPLOAD;
}
