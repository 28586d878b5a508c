/** Starts a real primary with one replica, and three real sentinels that watch it. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import type { Owner } from './gateway.ts';
import { freePort } from './ports.ts';
import { type RedisServer, startRedis } from './redis.ts';
import { endRedis, launchRedis } from './redis-process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { until } from './until.ts';

interface WatchedRedis {
  /** A `redis+sentinel://` address with all three. */
  readonly url: string;
  readonly sentinels: readonly SentinelProcess[];
  /** The server that was started as primary. */
  readonly first: RedisServer;
  /** The server that was started as its replica. */
  readonly second: RedisServer;
  /** Lets the sentinels replace a primary that does not answer for a second. Until then they wait for it. */
  watchClosely(): Promise<void>;
  /**
   * Sends SENTINEL FAILOVER: the primary changes although nothing is wrong. Resolves once the sentinels name the other
   * one.
   */
  failover(): Promise<void>;
  /** Resolves once most sentinels name this server as the primary. */
  untilPrimaryIs(server: RedisServer): Promise<void>;
}

interface SentinelProcess {
  readonly port: number;
  readonly client: Redis;
  freeze(): void;
  thaw(): void;
  kill(): Promise<void>;
}

export const SERVICE = 'floodgate-store';
/** Time without an answer after which a server counts as down. A busy machine answers earlier. */
const PATIENT_MS = 60_000;
const SOON_MS = 1000;

/** @param requirePassword of the servers; the sentinels then know it, and ask for none themselves */
export async function startWatchedRedis(owner: Owner, requirePassword?: string): Promise<WatchedRedis> {
  const auth =
    requirePassword === undefined ? [] : ['--requirepass', requirePassword, '--masterauth', requirePassword];
  // A replica stores its data in a file, and a server that starts reads its file. So each server has one of its own.
  const folder = temporaryFolder(owner);
  const args = (file: string): readonly string[] => [
    ...['--dir', folder, '--dbfilename', file, '--repl-diskless-sync-delay', '0'],
    ...auth,
  ];
  const first = await startRedis(owner, args('first.rdb'), requirePassword);
  const second = await startRedis(
    owner,
    [...args('second.rdb'), '--replicaof', '127.0.0.1', String(first.port)],
    requirePassword,
  );
  await until(async () => /state=online/.test(await first.client.info('replication')));

  const sentinels = await Promise.all(
    [1, 2, 3].map(() => startSentinel(owner, folder, first.port, requirePassword)),
  );
  const named = async ({ client }: SentinelProcess): Promise<number> => {
    const [, port] = (await client.call('SENTINEL', 'GET-MASTER-ADDR-BY-NAME', SERVICE)) as string[];
    return Number(port);
  };
  /** Returns what the sentinel knows of the primary. */
  const fieldsOf = async ({ client }: SentinelProcess): Promise<(name: string) => string | undefined> => {
    const fields = ((await client.call('SENTINEL', 'MASTER', SERVICE)) as unknown[]).map(String);
    return (name) => fields[fields.indexOf(name) + 1];
  };
  for (const sentinel of sentinels) {
    await until(async () => {
      const field = await fieldsOf(sentinel);
      return field('num-slaves') === '1' && field('num-other-sentinels') === '2';
    });
  }
  const untilPrimaryIs = (server: RedisServer): Promise<void> =>
    until(async () => {
      const ports = await Promise.all(
        sentinels.filter(({ client }) => client.status === 'ready').map((sentinel) => named(sentinel)),
      );
      return ports.filter((port) => port === server.port).length >= 2;
    });
  return {
    url: `redis+sentinel://${requirePassword === undefined ? '' : `:${requirePassword}@`}${sentinels
      .map(({ port }) => `127.0.0.1:${port}`)
      .join(',')}/${SERVICE}`,
    sentinels,
    first,
    second,
    untilPrimaryIs,
    async watchClosely() {
      for (const { client } of sentinels)
        await client.call('SENTINEL', 'SET', SERVICE, 'down-after-milliseconds', SOON_MS);
    },
    async failover() {
      const [sentinel] = sentinels;
      if (sentinel === undefined) throw new Error('there are three sentinels');
      const to = (await named(sentinel)) === first.port ? second : first;
      // The sentinel refuses while it is not sure of the replica yet, and on a busy machine it may give up.
      await until(async () => {
        const field = await fieldsOf(sentinel);
        if (field('port') === String(to.port)) return true;
        if (field('flags')?.includes('failover_in_progress') !== true)
          await sentinel.client.call('SENTINEL', 'FAILOVER', SERVICE).catch(() => undefined);
        return false;
      });
      await untilPrimaryIs(to);
    },
  };
}

async function startSentinel(
  owner: Owner,
  folder: string,
  primaryPort: number,
  password: string | undefined,
): Promise<SentinelProcess> {
  const port = await freePort();
  const file = join(folder, `${port}.conf`);
  writeFileSync(
    file,
    [
      `port ${port}`,
      'bind 127.0.0.1',
      `dir ${folder}`,
      `sentinel monitor ${SERVICE} 127.0.0.1 ${primaryPort} 2`,
      `sentinel down-after-milliseconds ${SERVICE} ${PATIENT_MS}`,
      `sentinel failover-timeout ${SERVICE} 5000`,
      ...(password === undefined ? [] : [`sentinel auth-pass ${SERVICE} ${password}`]),
      '',
    ].join('\n'),
  );
  const child = await launchRedis([file, '--sentinel'], /\+monitor master/);
  const client = new Redis(port, '127.0.0.1', {
    retryStrategy: () => 50,
    maxRetriesPerRequest: null,
    enableReadyCheck: false,
  });
  client.on('error', () => {
    // A test has killed it on purpose.
  });
  owner.teardown(async () => {
    client.disconnect();
    await endRedis(child);
  });
  return {
    port,
    client,
    freeze: () => void child.kill('SIGSTOP'),
    thaw: () => void child.kill('SIGCONT'),
    kill: () => endRedis(child),
  };
}
