/**
 * A swarm beside people, on two gateways with one Redis: 20,000 addresses with one to three requests each, 200 regulars,
 * and 50 honest newcomers, who come back when Retry-After says. Ten minutes of a day are pressed into one.
 */
import { setTimeout as sleep } from 'node:timers/promises';
import { stringify } from 'yaml';
import { IDENTITY_SECRET, startGateway } from '#bench/peers/floodgate.ts';
import { type Answer, Client } from '#bench/run/client.ts';
import { Processes } from '#bench/run/processes.ts';
import { rounded } from '#bench/run/report.ts';
import { quantile } from '#bench/run/statistics.ts';
import { COUNT_HEADER, countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf } from '#bench/run/usage.ts';
import { Digester } from '#gateway/identity/digest.ts';
import { historyKey } from '#gateway/limiter/history.ts';
import { DAY_MS, HISTORY_DAYS } from '#gateway/policy/groups.ts';
import type { Millis } from '#shared/clock.ts';
import { freePort } from '#test/support/ports.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { ATTACKER_ADDRESS, flood, head, inTurn } from './attacker.ts';
import { beginHistories } from './histories.ts';
import type { AbuseScenario } from './scenario.ts';
import { judgedTable, memoryGoal } from './verdict.ts';
import { startAttack } from './visit.ts';

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
};

/** @param kind the name under which the upstream counts the request */
type Asking = (address: string, kind: string) => Promise<Answer | null>;

export async function runSwarm(plan: SwarmPlan) {
  const { seconds, windowMs } = plan;
  await using processes = new Processes();
  const upstreamPort = await startUpstream(processes);
  const redis = await startRedis(processes);
  const regulars = Array.from({ length: plan.regulars }, (_, i) => `192.0.2.${i}`);
  await writeHistory(redis, regulars);
  const ports = [await freePort(), await freePort()];
  const env = { GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32,127.0.0.1/32` };
  const launch = { processes, upstreamPort, redisPort: redis.port, policies: fileOf(plan), env };
  const gateways = await Promise.all(ports.map((port) => startGateway({ ...launch, port })));
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

  const began = Date.now();
  for (const port of ports) await startAttack(processes, SWARM.name, port, seconds + windowMs / 1000);
  const people = await askAsPeople(plan, regulars, ask);
  // By the middle of the last window, it is full too.
  await sleep((1.5 * windowMs - (Date.now() % windowMs)) % windowMs);
  const { admitted = 0, regular = 0 } = await countsOf(upstreamPort);
  const windows = Math.floor(Date.now() / windowMs) - Math.floor(began / windowMs) + 1;
  const newcomers = admitted - regular;
  const rssMb = peakMbOf(gateways.map(({ child }) => child.pid ?? 0));
  const goals = {
    regulars: [people.regular, people.regulars, people.regular === people.regulars],
    honest: [people.honest, plan.honest, people.honest >= plan.honest * HONEST_MIN],
    newcomers: [newcomers, windows * plan.limit, newcomers === windows * plan.limit],
  } as const;
  const named = Object.entries(goals).map(([name, [value, of, isReached]]) => {
    return { name, isReached, text: `${value} of ${of}` };
  });
  const figures = {
    ...Object.fromEntries(named.map(({ name, text }) => [name, text])),
    'p99 ms': rounded(people.p99Ms, 1),
    'RSS MB': rounded(rssMb, 0),
  };
  const table = judgedTable(SWARM, figures, [...named, memoryGoal(rssMb)]);
  return { ...table, ...people, newcomers, windows, rssMb };
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
