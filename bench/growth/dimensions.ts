/** This file lists what may grow, and the gateways that let it grow. */
import { once } from 'node:events';
import { connect, type Socket } from 'node:net';
import { SCENARIOS, type Scenario } from '#bench/costs/scenarios.ts';
import { type PolicyFile, policiesOf, raiseLimits, startGateway } from '#bench/peers/floodgate.ts';
import { HIGH_LIMIT, type Launch, type Peer } from '#bench/peers/peer.ts';
import { ROOT } from '#bench/run/programs.ts';

/** How the gateway of a point differs from the shipped one, whose limits are never reached. */
interface Variant {
  readonly change?: (file: PolicyFile, launch: Launch) => void;
  readonly workers?: number;
  readonly idle?: number;
  readonly differences?: Partial<Scenario>;
}

/** An operator with so many idle connections would set this. */
const ENV = { GATEWAY_CONNECTIONS: '16384', GATEWAY_KEEPALIVE_MS: '3600000' };
/** Less than the share of a client. */
const IDLE_PER_ADDRESS = 250;

export const HOT = SCENARIOS.find(({ name }) => name === 'hot') as Scenario;
const HOT_POLICY = 'client-v1-environment';

export const DIMENSIONS = [
  dimension('policies', 'policies', [1, 17, 200, 1000], (count) => ({
    // More paths than the gateway remembers, so that each of them is compared with the routes.
    differences: { path: '/api/v1/client/KEY/environment', keys: 20_000 },
    change: (file) => setPolicies(file, count),
  })),
  dimension('keys', 'API keys in use', [300, 20_000, 100_000, 1_000_000], (keys) => ({
    differences: { path: '/api/v1/management/surveys', keys },
  })),
  dimension('idle', 'idle connections', [10, 1000, 10_000], (idle) => ({ idle })),
  dimension('workers', 'workers', [1, 2], (workers) => ({ workers })),
  dimension('distinct', 'different values of a client', [10, 100, 1000], (values) => ({
    // The first request of the bench has one more value.
    differences: { keys: values - 1 },
    change: ({ policies }) =>
      Object.assign(policies.find(({ name }) => name === HOT_POLICY) ?? {}, {
        ...{ limit: 1000, window: '1h', distinct: { header: 'x-api-key' } },
      }),
  })),
  dimension('networks', 'networks under deny', [1000, 100_000], (count) => ({
    change(file, { processes, port }) {
      processes.file(`networks-${port}.txt`, networks(count));
      Object.assign(file, { deny: [{ file: `networks-${port}.txt` }] });
    },
  })),
];

/** @param title what the numbers of the points count */
function dimension(name: string, title: string, at: readonly number[], variantOf: (at: number) => Variant) {
  const peers = at.map((value): Peer => {
    const { change, workers = 1, idle = 0, differences = {} } = variantOf(value);
    let sockets: readonly Socket[] = [];
    return {
      ...{ name: String(value), label: value.toLocaleString('en'), differences },
      ...{ needs: ['redis-server'], countsInRedis: true },
      async start(launch) {
        const policies = policiesOf(ROOT, (file) => {
          raiseLimits(file);
          change?.(file, launch);
        });
        const started = await startGateway({ ...launch, policies, workers, env: ENV });
        sockets = await openIdle(launch, idle);
        return started;
      },
      flaw: () => (sockets.some(({ closed }) => closed) ? 'it closed idle connections' : null),
    };
  });
  return { name, title, peers };
}

/** Leaves one policy, which counts the requests of the bench, or adds some for other routes. */
function setPolicies(file: PolicyFile, count: number): void {
  if (count === 1) file.policies = file.policies.filter(({ name }) => name === HOT_POLICY);
  for (let i = file.policies.length; i < count; i++) {
    const route = `GET /api/v1/client/{workspaceId}/more-${i}`;
    const policy = { name: `more-${i}`, route, identifier: 'ip', limit: HIGH_LIMIT, window: '1m' };
    file.policies.push(policy);
  }
}

/** Returns every second network of 16 addresses from 127.0.0.16 on. The address of the bench lies between them. */
function networks(count: number): string {
  const octets = (i: number): string => [i >> 11, (i >> 3) & 255, ((i & 7) << 5) | 16].join('.');
  return Array.from({ length: count }, (_, i) => `127.${octets(i)}/28\n`).join('');
}

/** Opens connections from several addresses. Each has received the reply to one request. */
async function openIdle({ port, processes }: Launch, count: number): Promise<readonly Socket[]> {
  const sockets: Socket[] = [];
  for (let i = 0; i < count; i++) {
    const localAddress = `127.0.1.${1 + Math.floor(i / IDLE_PER_ADDRESS)}`;
    const socket = connect({ host: '127.0.0.1', port, localAddress });
    sockets.push(socket);
    processes.teardown(() => socket.destroy());
    socket.write(`GET ${HOT.path} HTTP/1.1\r\nhost: bench\r\n\r\n`);
    await once(socket, 'data');
  }
  return sockets;
}
