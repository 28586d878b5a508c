/**
 * A swarm beside people, on two gateways with one Redis: 20,000 addresses with one to three requests each, 200 regulars,
 * and 50 honest newcomers, who come back when Retry-After says. Ten minutes of a day are pressed into one.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { startGateway } from '#bench/peers/floodgate.ts';
import { type Answer, Client } from '#bench/run/client.ts';
import type { Processes } from '#bench/run/processes.ts';
import { BENCH } from '#bench/run/programs.ts';
import { type RedisServer, startRedis } from '#bench/run/redis.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { quantile } from '#bench/run/statistics.ts';
import { COUNT_HEADER, countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf, usageOf } from '#bench/run/usage.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { EVERYONE } from '#gateway/identity/identifier.ts';
import { historySinceKey } from '#gateway/limiter/replicas.ts';
import { historyKey } from '#gateway/limiter/visits.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/regulars.ts';
import { freePort } from '#test/support/ports.ts';
import { ATTACKER_ADDRESS, flood, head, inTurn } from './attacker.ts';
import { scenario } from './scenario.ts';
import { RSS_MB_MAX } from './verdict.ts';

const PATH = '/bench/swarm';
const WINDOW_MS = 10_000;
/** Newcomers in each window: one in seven of those who ask. */
const LIMIT = 1000;
const SECRET = 'secret-of-the-swarm-of-no-worth-to-anybody';
const SWARM_PER_SECOND = 333;
const REGULARS = 200;
const HONEST = 50;
const HONEST_MIN = 0.9;
const SECONDS = 60;
const EVERY_MS = 10;
/** One newcomer after so many requests of regulars. */
const HONEST_EVERY = 97;

const FILE = stringify({
  version: 1,
  identifiers: { ip: { source: 'client-address' } },
  policies: [
    {
      ...{ name: 'site', route: `GET ${PATH}`, identifier: 'ip', limit: 300, window: '1m' },
      newcomers: { limit: LIMIT, window: `${WINDOW_MS / 1000}s` },
    },
  ],
});

let sent = 0;

/** Three addresses send six requests: one, two and three. */
function ofSwarm(): string {
  const address = Math.floor(sent / 6) * 3 + (([0, 1, 1, 2, 2, 2] as const)[sent++ % 6] ?? 0);
  return head('GET', PATH, [`X-Forwarded-For: 10.${process.pid & 127}.${address >> 8}.${address & 255}`]);
}

export const SWARM = scenario(
  'swarm',
  '20,000 addresses with one to three requests each, beside regulars and newcomers, on two gateways',
  flood(SWARM_PER_SECOND, ofSwarm),
  { run: runSwarm },
);

/** @param kind the name under which the upstream counts the request */
type Asking = (address: string, kind: string) => Promise<Answer | null>;

async function runSwarm(processes: Processes): Promise<Table & { readonly isReached: boolean }> {
  await using ends = new AsyncDisposableStack();
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  ends.defer(() => upstream.stop('SIGKILL'));
  const redis = await startRedis(processes);
  ends.defer(() => redis.stop());
  const regulars = Array.from({ length: REGULARS }, (_, i) => `192.0.2.${i}`);
  await writeHistory(redis, regulars);
  const ports = [await freePort(), await freePort()];
  const env = {
    GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32,127.0.0.1/32`,
    GATEWAY_IDENTITY_SECRET: SECRET,
  };
  const launch = { processes, upstreamPort, redisPort: redis.port, policies: FILE, env };
  const gateways = await Promise.all(ports.map((port) => startGateway({ ...launch, port })));
  for (const gateway of gateways) ends.defer(() => gateway.stop('SIGKILL'));
  const clients = inTurn(ports.map((port) => new Client({ port, timeoutMs: 5000 })));
  const ask: Asking = (address, kind) => {
    const headers = { 'x-forwarded-for': address, [COUNT_HEADER]: kind };
    return clients()
      .send({ method: 'GET', path: PATH, headers })
      .catch(() => null);
  };
  // Today is the second day of the regulars.
  for (const address of regulars) await ask(address, 'regular');
  await sleep(2 * WINDOW_MS - (Date.now() % WINDOW_MS));
  await countsOf(upstreamPort);

  const pids = gateways.map(({ pid }) => pid);
  const cpuUs = (): readonly number[] => [pids, [redis.pid]].map((some) => usageOf(some).cpuUs);
  const before = cpuUs();
  const began = Date.now();
  for (const port of ports) {
    const args = [
      join(BENCH, 'abuse', 'scenarios.ts'),
      SWARM.name,
      String(port),
      String(SECONDS + WINDOW_MS / 1000),
    ];
    const swarm = await processes.node('the swarm', args, { readyText: 'attacking' });
    ends.defer(() => swarm.stop());
  }
  const people = await askAsPeople(regulars, ask);
  // By the middle of the last window, it is full too.
  await sleep((1.5 * WINDOW_MS - (Date.now() % WINDOW_MS)) % WINDOW_MS);
  const windows = Math.floor(Date.now() / WINDOW_MS) - Math.floor(began / WINDOW_MS) + 1;
  const cores = cpuUs().map((us, i) => (us - (before[i] ?? 0)) / 1000 / (Date.now() - began));
  const { admitted = 0, regular = 0 } = await countsOf(upstreamPort);
  const newcomers = admitted - regular;
  const rssMb = peakMbOf(pids);
  const redisMb = Number(/used_memory_peak:(\d+)/.exec(await redis.client.info('memory'))?.[1]) / 1e6;
  const goals = {
    regulars: people.regular === people.regulars,
    honest: people.honest >= HONEST * HONEST_MIN,
    exact: newcomers === windows * LIMIT,
    RSS: rssMb <= RSS_MB_MAX,
  };
  const missed = Object.entries(goals).flatMap(([name, isReached]) => (isReached ? [] : [name]));
  return {
    isReached: missed.length === 0,
    title: `${SWARM.name}: ${SWARM.title}`,
    head: [
      'regulars',
      'p99 ms',
      'honest',
      'admitted newcomers',
      'RSS MB',
      'CPU',
      'Redis CPU',
      'Redis MB',
      'verdict',
    ],
    rows: [
      [
        ...[
          `${people.regular} of ${people.regulars}`,
          rounded(people.p99Ms, 1),
          `${people.honest} of ${HONEST}`,
        ],
        ...[`${newcomers} of ${windows} × ${LIMIT}`, rounded(rssMb, 0)],
        ...[...cores.map((core) => `${rounded(core * 100, 0)} %`), rounded(redisMb, 1)],
        missed.length === 0 ? 'reached' : `missed: ${missed.join(', ')}`,
      ],
    ],
  };
}

/** The regulars were here yesterday, and histories began a week ago. */
async function writeHistory({ client }: RedisServer, regulars: readonly string[]): Promise<void> {
  const digester = new Digester(SECRET);
  const { digest } = digester.identify(EVERYONE, '');
  await client.set(historySinceKey(digest), Date.now() - 7 * DAY_MS);
  const yesterday = (Math.floor(Date.now() / DAY_MS) - 1) * 2 ** HISTORY_DAYS + 1;
  for (const address of regulars)
    await client.set(
      historyKey(digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, address)),
      yesterday,
    );
}

async function askAsPeople(regulars: readonly string[], ask: Asking) {
  const latenciesMs: number[] = [];
  const count = { regular: 0, regulars: (SECONDS * 1000) / EVERY_MS, honest: 0 };
  const askAsRegular = async (address: string): Promise<void> => {
    const answer = await ask(address, 'regular');
    if (answer?.status !== 200) return;
    count.regular++;
    latenciesMs.push(answer.latencyMs);
  };
  const askTwice = async (address: string): Promise<void> => {
    const first = await ask(address, 'honest');
    if (first?.status === 429) await sleep(Number(first.headers['retry-after']) * 1000);
    if (first?.status === 200 || (await ask(address, 'honest'))?.status === 200) count.honest++;
  };
  const running: Promise<void>[] = [];
  const began = Date.now();
  const nextRegular = inTurn(regulars);
  for (let i = 0; i < count.regulars; i++) {
    await sleep(Math.max(0, began + i * EVERY_MS - Date.now()));
    running.push(askAsRegular(nextRegular()));
    // The last ones have time for their second try.
    const honest = i / HONEST_EVERY;
    if (Number.isInteger(honest) && honest < HONEST) running.push(askTwice(`198.51.100.${honest}`));
  }
  await Promise.all(running);
  return { ...count, p99Ms: quantile(latenciesMs, 0.99) };
}
