/**
 * Measures how many events a second reach a receiver that replies 200 at once, while responses come in as fast as the API
 * takes them. This includes everything from the request to the delivery that is stored as done.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { workspaceId } from '#bench/api/service.ts';
import { until } from '#test/support/until.ts';
import { ANSWER } from './operations.ts';
import { RECEIVER_HOST, type Service } from './service.ts';

/** The same work for every number of webhooks. */
const DELIVERIES = 4_000;
const CLIENTS = 8;

interface Throughput {
  readonly deliveriesPerSecond: number;
  readonly responsesPerSecond: number;
  /** Deliveries that arrived again, because their first attempt was taken for a failure. */
  readonly repeated: number;
}

/** Creates responses, with so many webhooks that receive each. The webhooks are removed afterwards. */
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
    request.resume().once('end', () => response.end());
  });
  await once(receiver.listen(0, RECEIVER_HOST), 'listening');
  const { port } = receiver.address() as AddressInfo;
  const webhookIds: string[] = [];
  try {
    for (let i = 0; i < webhooks; i++) {
      const body = {
        workspaceId,
        url: `http://${RECEIVER_HOST}:${port}/${i}`,
        triggers: ['responseCreated'],
      };
      const { id } = await service.call({ method: 'POST', path: '/api/v1/webhooks', body });
      webhookIds.push(id ?? '');
    }
    const events = DELIVERIES / webhooks;
    const began = performance.now();
    const secondsSince = (): number => (performance.now() - began) / 1000;
    let left = events;
    const create = async (): Promise<void> => {
      while (left-- > 0) {
        const body = { surveyId, finished: false, data: ANSWER };
        await service.call({ method: 'POST', path: `/api/v1/client/${workspaceId}/responses`, body });
      }
    };
    await Promise.all(Array.from({ length: CLIENTS }, create));
    const responsesPerSecond = events / secondsSince();
    await until(() => arrived.size >= DELIVERIES, 'all deliveries to arrive');
    const deliveriesPerSecond = DELIVERIES / secondsSince();
    return { deliveriesPerSecond, responsesPerSecond, repeated: requests - arrived.size };
  } finally {
    for (const id of webhookIds) await service.call({ method: 'DELETE', path: `/api/v1/webhooks/${id}` });
    receiver.closeAllConnections();
    receiver.close();
  }
}
