/** Starts a real Redis Cluster of three primaries without replicas. */
import type { ChildProcess } from 'node:child_process';
import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { endRedis, launchRedis, memoryOnly } from './redis-process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

export interface ClusterNode {
  readonly port: number;
  /** A plain client of this node, for the test's own commands. */
  readonly client: Redis;
  /** First and last slot that it had at the start. */
  readonly slots: readonly [number, number];
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
  /** Starts it again on the same ports, with its cluster configuration and without data. */
  restart(): Promise<void>;
}

export interface RedisCluster {
  /** Address with the first two nodes. */
  readonly url: string;
  readonly nodes: readonly [ClusterNode, ClusterNode, ClusterNode];
  /** Resolves once all live nodes agree that all slots are served. */
  untilOk(): Promise<void>;
  /** Moves a slot with its keys, as `redis-cli --cluster reshard` does. `during` runs when half of it is done. */
  moveSlot(slot: number, from: ClusterNode, to: ClusterNode, during?: () => Promise<void>): Promise<void>;
}

const RANGES = [
  [0, 5460],
  [5461, 10_922],
  [10_923, 16_383],
] as const;

/** Time without an answer after which a node is lost for the others. A busy machine answers earlier. */
const NODE_TIMEOUT_MS = 15_000;
/** For tests that wait until the other nodes notice a loss. */
export const LOST_SOON = ['--cluster-node-timeout', '1500'] as const;

/** @param args further arguments of each redis-server, for instance ['--cluster-require-full-coverage', 'no'] */
export async function startCluster(owner: Owner, args: readonly string[] = []): Promise<RedisCluster> {
  const folder = temporaryFolder(owner);
  const [a, b, c] = await Promise.all(RANGES.map((slots) => startNode(owner, folder, slots, args)));
  if (a === undefined || b === undefined || c === undefined) throw new Error('there are three ranges');
  const nodes = [a, b, c] as const;
  await Promise.all(
    nodes.map(async (node, index) => {
      await node.client.cluster('SET-CONFIG-EPOCH', index + 1);
      await node.client.call('CLUSTER', 'ADDSLOTSRANGE', ...node.slots);
    }),
  );
  for (const other of [b, c]) await a.client.call('CLUSTER', 'MEET', '127.0.0.1', other.port, other.busPort);
  const untilOk = async (): Promise<void> => {
    for (const { client, isRunning } of nodes) {
      if (!isRunning()) continue;
      await until(async () =>
        /cluster_state:ok[\s\S]*cluster_slots_assigned:16384[\s\S]*cluster_known_nodes:3/.test(
          await client.cluster('INFO'),
        ),
      );
    }
  };
  await untilOk();
  return {
    url: `redis+cluster://127.0.0.1:${a.port},127.0.0.1:${b.port}`,
    nodes,
    untilOk,
    async moveSlot(slot, from, to, during = async () => {}) {
      const [source, target] = await Promise.all([from, to].map(({ client }) => client.cluster('MYID')));
      await to.client.call('CLUSTER', 'SETSLOT', slot, 'IMPORTING', String(source));
      await from.client.call('CLUSTER', 'SETSLOT', slot, 'MIGRATING', String(target));
      const keys = (await from.client.cluster('GETKEYSINSLOT', slot, 1000)) as string[];
      if (keys.length > 0) {
        await from.client.call('MIGRATE', '127.0.0.1', to.port, '', 0, 5000, 'KEYS', ...keys);
      }
      await during();
      for (const { client } of [to, from]) {
        await client.call('CLUSTER', 'SETSLOT', slot, 'NODE', String(target));
      }
    },
  };
}

interface StartedNode extends ClusterNode {
  readonly busPort: number;
  /** Whether it was not killed. It may be frozen. */
  isRunning(): boolean;
}

async function startNode(
  owner: Owner,
  folder: string,
  slots: readonly [number, number],
  args: readonly string[],
): Promise<StartedNode> {
  const [port, busPort] = [await freePort(), await freePort()];
  const ownFolder = join(folder, String(port));
  mkdirSync(ownFolder);
  const all = [
    ...memoryOnly(port),
    ...['--cluster-enabled', 'yes', '--cluster-port', String(busPort)],
    ...['--cluster-node-timeout', String(NODE_TIMEOUT_MS)],
    ...['--dir', ownFolder],
    ...args,
  ];
  let child: ChildProcess = await launchRedis(all);
  const client = new Redis(port, '127.0.0.1', { retryStrategy: () => 50, maxRetriesPerRequest: null });
  client.on('error', () => {
    // The tests kill this server on purpose; the client reconnects by itself.
  });
  owner.teardown(async () => {
    client.disconnect();
    await endRedis(child);
  });
  return {
    port,
    busPort,
    client,
    slots,
    isRunning: () => child.exitCode === null && child.signalCode === null,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill: () => endRedis(child),
    async restart() {
      await endRedis(child);
      child = await launchRedis(all);
    },
  };
}
