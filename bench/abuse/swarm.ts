/**
 * A swarm beside people, on two gateways with one Redis: 20,000 addresses with one to three requests each, 200 regulars,
 * and 50 honest newcomers, who come back when Retry-After says. Ten minutes of a day are pressed into one.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { IDENTITY_SECRET, startGateway } from '#bench/peers/floodgate.ts';
import { type Answer, Client } from '#bench/run/client.ts';
import type { Processes } from '#bench/run/processes.ts';
import { BENCH } from '#bench/run/programs.ts';
import { type RedisServer, startRedis } from '#bench/run/redis.ts';
import { rounded, type Table } from '#bench/run/report.ts';
import { quantile } from '#bench/run/statistics.ts';
import { COUNT_HEADER, countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf, usageOf } from '#bench/run/usage.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/regulars.ts';
import type { Millis } from '#shared/clock.ts';
import { freePort } from '#test/support/ports.ts';
import { ATTACKER_ADDRESS, flood, head, inTurn } from './attacker.ts';
import { beginHistories } from './histories.ts';
import type { AbuseScenario } from './scenario.ts';
import { RSS_MB_MAX } from './verdict.ts';

const PATH = '/bench/swarm';
const SWARM_PER_SECOND = 333;
const HONEST_MIN = 0.9;
const EVERY_MS = 10;
/** One newcomer after so many requests of regulars. */
const HONEST_EVERY = 97;

interface SwarmPlan {
  readonly seconds: number;
  readonly windowMs: Millis;
  /** Newcomers in each window. */
  readonly limit: number;
  readonly regulars: number;
  readonly honest: number;
  /** How long a person waits for a reply. */
  readonly replyMsMax: Millis;
}

/** The limit admits one in seven of the newcomers who ask. */
const LONG: SwarmPlan = {
  seconds: 60,
  windowMs: 10_000,
  limit: 1000,
  regulars: 200,
  honest: 50,
  replyMsMax: 5000,
};

const fileOf = ({ limit, windowMs }: SwarmPlan): string =>
  stringify({
    version: 1,
    identifiers: { ip: { source: 'client-address' } },
    policies: [
      {
        ...{ name: 'site', route: `GET ${PATH}`, identifier: 'ip', limit: 300, window: '1m' },
        newcomers: { limit, window: `${windowMs / 1000}s` },
      },
    ],
  });

let sent = 0;

/** Three addresses send six requests: one, two and three. */
function ofSwarm(): string {
  const address = Math.floor(sent / 6) * 3 + (([0, 1, 1, 2, 2, 2] as const)[sent++ % 6] ?? 0);
  return head('GET', PATH, [`X-Forwarded-For: 10.${process.pid & 127}.${address >> 8}.${address & 255}`]);
}

export const SWARM: AbuseScenario = {
  name: 'swarm',
  title: '20,000 addresses with one to three requests each, beside regulars and newcomers, on two gateways',
  attack: flood(SWARM_PER_SECOND, ofSwarm),
  run: async (processes) => tableOf(await runSwarm(processes, LONG)),
};

/** @param kind the name under which the upstream counts the request */
type Asking = (address: string, kind: string) => Promise<Answer | null>;

/** Counts of requests, of all windows together. */
interface SwarmResult {
  readonly plan: SwarmPlan;
  /** Requests that regulars sent, and those of them that got 200. */
  readonly regulars: number;
  readonly regular: number;
  readonly p99Ms: Millis;
  /** Honest newcomers who got 200 within two tries. */
  readonly honest: number;
  /** Requests of newcomers that reached the upstream. */
  readonly newcomers: number;
  readonly windows: number;
  readonly rssMb: number;
  readonly redisMb: number;
  /** CPU time of both gateways and of Redis, in cores. */
  readonly cores: readonly number[];
}

export async function runSwarm(processes: Processes, plan: SwarmPlan): Promise<SwarmResult> {
  const { seconds, windowMs } = plan;
  await using ends = new AsyncDisposableStack();
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  ends.defer(() => upstream.stop('SIGKILL'));
  const redis = await startRedis(processes);
  ends.defer(() => redis.stop());
  const regulars = Array.from({ length: plan.regulars }, (_, i) => `192.0.2.${i}`);
  await writeHistory(redis, regulars);
  const ports = [await freePort(), await freePort()];
  const env = { GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32,127.0.0.1/32` };
  const launch = { processes, upstreamPort, redisPort: redis.port, policies: fileOf(plan), env };
  const gateways = await Promise.all(ports.map((port) => startGateway({ ...launch, port })));
  for (const gateway of gateways) ends.defer(() => gateway.stop('SIGKILL'));
  const clients = inTurn(ports.map((port) => new Client({ port, timeoutMs: plan.replyMsMax })));
  const ask: Asking = (address, kind) => {
    const headers = { 'x-forwarded-for': address, [COUNT_HEADER]: kind };
    return clients()
      .send({ method: 'GET', path: PATH, headers })
      .catch(() => null);
  };
  // Today is the second day of the regulars.
  for (const address of regulars) await ask(address, 'regular');
  await sleep(2 * windowMs - (Date.now() % windowMs));
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
      String(seconds + windowMs / 1000),
    ];
    const swarm = await processes.node('the swarm', args, { readyText: 'attacking' });
    ends.defer(() => swarm.stop());
  }
  const people = await askAsPeople(plan, regulars, ask);
  // By the middle of the last window, it is full too.
  await sleep((1.5 * windowMs - (Date.now() % windowMs)) % windowMs);
  const cores = cpuUs().map((us, i) => (us - (before[i] ?? 0)) / 1000 / (Date.now() - began));
  const { admitted = 0, regular = 0 } = await countsOf(upstreamPort);
  const windows = Math.floor(Date.now() / windowMs) - Math.floor(began / windowMs) + 1;
  return {
    ...{ plan, ...people, newcomers: admitted - regular, windows, cores, rssMb: peakMbOf(pids) },
    redisMb: Number(/used_memory_peak:(\d+)/.exec(await redis.client.info('memory'))?.[1]) / 1e6,
  };
}

function tableOf(result: SwarmResult): Table & { readonly isReached: boolean } {
  const { plan, regular, regulars, p99Ms, honest, newcomers, windows, rssMb, redisMb, cores } = result;
  const goals = {
    regulars: regular === regulars,
    honest: honest >= plan.honest * HONEST_MIN,
    exact: newcomers === windows * plan.limit,
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
        ...[`${regular} of ${regulars}`, rounded(p99Ms, 1), `${honest} of ${plan.honest}`],
        ...[`${newcomers} of ${windows} × ${plan.limit}`, rounded(rssMb, 0)],
        ...[...cores.map((core) => `${rounded(core * 100, 0)} %`), rounded(redisMb, 1)],
        missed.length === 0 ? 'reached' : `missed: ${missed.join(', ')}`,
      ],
    ],
  };
}

/** The regulars were here yesterday, and histories began a week ago. */
async function writeHistory(redis: RedisServer, regulars: readonly string[]): Promise<void> {
  await beginHistories(redis);
  const digester = new Digester(IDENTITY_SECRET);
  const yesterday = (Math.floor(Date.now() / DAY_MS) - 1) * 2 ** HISTORY_DAYS + 1;
  for (const address of regulars)
    await redis.client.set(
      historyKey(digester.identify({ name: 'ip', kind: 'address', ipv6Prefix: 64 }, address)),
      yesterday,
    );
}

async function askAsPeople(plan: SwarmPlan, regulars: readonly string[], ask: Asking) {
  const latenciesMs: number[] = [];
  const count = { regular: 0, regulars: (plan.seconds * 1000) / EVERY_MS, honest: 0 };
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
    if (Number.isInteger(honest) && honest < plan.honest) running.push(askTwice(`198.51.100.${honest}`));
  }
  await Promise.all(running);
  return { ...count, p99Ms: quantile(latenciesMs, 0.99) };
}
