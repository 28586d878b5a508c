/**
 * How many events a second reach a receiver that answers 200 at once, while responses come in as fast as the API takes
 * them. The receiver lives in the bench's process; the API makes, fans out, signs, sends and settles in its own, so the
 * figure is of the whole way from a request to a delivery that is written down as made.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import { setTimeout as sleep } from 'node:timers/promises';
import { idIn } from './operations.ts';
import { receiverHost, type Service, workspaceId } from './service.ts';

/** The same work for every number of webhooks. */
const DELIVERIES = 4_000;
/** Requests that create responses at the same time. */
const CREATORS = 8;
/** Without a delivery in this time something is wrong: attempts last at most 5 s. */
const STALLED_MS = 30_000;
const POLL_MS = 5;

export interface Throughput {
  readonly webhooks: number;
  readonly events: number;
  /** Until the last response was created. */
  readonly createSeconds: number;
  /** Until the last delivery arrived, from the same start. */
  readonly deliverSeconds: number;
  /** Deliveries that arrived again: their first attempt was taken for failed. */
  readonly repeated: number;
}

/** Creates responses of the survey, with so many webhooks that hear of each; takes the webhooks away again. */
export async function measureWebhooks(
  service: Service,
  surveyId: string,
  webhooks: number,
): Promise<Throughput> {
  const arrived = new Set<string>();
  let requests = 0;
  const receiver = createServer((request, response) => {
    requests += 1;
    arrived.add(String(request.headers['webhook-id']));
    // The next request on the connection follows the whole of this one.
    request.resume().once('end', () => response.end());
  });
  receiver.listen(0, receiverHost);
  await once(receiver, 'listening');
  const address = receiver.address();
  if (typeof address !== 'object' || address === null) throw new Error('The receiver has no port');

  const webhookIds: string[] = [];
  try {
    for (let i = 0; i < webhooks; i++) {
      const body = {
        workspaceId,
        url: `http://${receiverHost}:${address.port}/${i}`,
        triggers: ['responseCreated'],
      };
      webhookIds.push(idIn(await service.call({ method: 'POST', path: '/api/v1/webhooks', body })));
    }
    const events = DELIVERIES / webhooks;
    const began = performance.now();
    const secondsSince = (): number => (performance.now() - began) / 1000;
    await createResponses(service, surveyId, events);
    const createSeconds = secondsSince();
    await arrivalOf(events * webhooks, () => arrived.size);
    const deliverSeconds = secondsSince();
    return { webhooks, events, createSeconds, deliverSeconds, repeated: requests - arrived.size };
  } finally {
    for (const id of webhookIds) await service.call({ method: 'DELETE', path: `/api/v1/webhooks/${id}` });
    receiver.closeAllConnections();
    receiver.close();
  }
}

export function describe({ createSeconds, deliverSeconds, events, repeated, webhooks }: Throughput): string {
  const perSecond = (count: number, seconds: number): string =>
    Math.round(count / seconds).toLocaleString('en');
  const deliveries = events * webhooks;
  return [
    `  ${deliveries.toLocaleString('en')} deliveries to ${webhooks} ${webhooks === 1 ? 'webhook' : 'webhooks'}:`,
    `${perSecond(deliveries, deliverSeconds)} a second`,
    `(${perSecond(events, createSeconds)} responses a second came in, ${repeated} deliveries arrived again)`,
  ].join(' ');
}

async function createResponses(service: Service, surveyId: string, count: number): Promise<void> {
  let left = count;
  const creator = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const body = { surveyId, finished: false, data: { q1: 'An answer of some length, typed by somebody' } };
      await service.call({ method: 'POST', path: `/api/v1/client/${workspaceId}/responses`, body });
    }
  };
  await Promise.all(Array.from({ length: CREATORS }, creator));
}

/** @throws Error when nothing arrives any more */
async function arrivalOf(count: number, arrived: () => number): Promise<void> {
  let last = arrived();
  let lastAt = performance.now();
  while (last < count) {
    await sleep(POLL_MS);
    if (arrived() > last) {
      last = arrived();
      lastAt = performance.now();
    } else if (performance.now() - lastAt > STALLED_MS) {
      throw new Error(`Only ${last} of ${count} deliveries arrived`);
    }
  }
}
