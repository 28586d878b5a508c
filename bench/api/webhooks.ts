/**
 * Measures the number of events a second that reach a webhook, while clients create responses as fast as the API
 * accepts them. The receiver replies 200 at once. The time includes all steps from the request to the stored delivery.
 */
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { workspaceId } from '#bench/api/service.ts';
import { until } from '#test/support/until.ts';
import { ANSWER } from './operations.ts';
import { RECEIVER_HOST, type Service } from './service.ts';

/** Total number of deliveries. It is the same for every number of webhooks, so that the work is the same. */
const DELIVERIES = 4_000;
const CLIENTS = 8;

interface Throughput {
  readonly deliveriesPerSecond: number;
  readonly responsesPerSecond: number;
  /** Number of deliveries that arrived twice, because the API took the first attempt for a failure. */
  readonly repeated: number;
}

/** Creates webhooks and then responses. Each webhook receives each response. The webhooks are removed afterwards. */
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
