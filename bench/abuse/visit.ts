/** Runs one scenario: starts new processes, measures the visitor alone, then the visitor during the attack. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { policiesOf, raiseLimits, startGateway } from '#bench/peers/floodgate.ts';
import { Processes } from '#bench/run/processes.ts';
import { BENCH, ROOT } from '#bench/run/programs.ts';
import { countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf } from '#bench/run/usage.ts';
import { ROWS_KEY } from '#gateway/bans/scripts.ts';
import { freePort } from '#test/support/ports.ts';
import type { Started } from '#test/support/process.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import { ATTACKER_ADDRESS, type AttackCounts } from './attacker.ts';
import { beginHistories } from './histories.ts';
import type { AbuseScenario } from './scenario.ts';
import { CONTROL, VISITORS, type VisitFigures, visit, WARM_UP } from './visitor.ts';

const SAMPLE_MS = 250;
/** The visitor starts this long after the attack, so that the attack has reached its full rate. */
const HEAD_START_MS = 500;
const TROUBLE_MS = 2000;

export interface VisitPlan {
  readonly aloneSeconds: number;
  readonly attackSeconds: number;
  /** A request of the visitor without a reply after this time has failed. */
  readonly replyMsMax: number;
}

export interface AbuseResult {
  readonly alone: VisitFigures;
  readonly attacked: VisitFigures;
  /** p99 of requests sent directly to the same upstream during the attack. */
  readonly directP99Ms: number;
  readonly rssPeakMb: number;
  /** Maximum number of keys that the attack added. */
  readonly redisKeys: number;
  readonly admitted: number;
  readonly smuggled: number;
  /** Number of clients that are banned at the end. */
  readonly bans: number;
  /** Number of minutes of the clock in which the attack sent requests. */
  readonly minutes: number;
  readonly attack: AttackCounts;
  /** Whether the gateway has ended. */
  readonly died: boolean;
}

export async function runScenario(
  scenario: AbuseScenario,
  { aloneSeconds, attackSeconds, replyMsMax: timeoutMs }: VisitPlan,
): Promise<AbuseResult> {
  const { store } = scenario;
  await using processes = new Processes();
  const upstreamPort = await startUpstream(processes);
  const redis = await startRedis(processes);
  if (store === 'week-old') await beginHistories(redis);
  const port = await freePort();
  const { child } = await startGateway({
    ...{ processes, port, upstreamPort, redisPort: redis.port },
    policies: policiesOf(ROOT, scenario.policies ?? raiseLimits),
    env: scenario.trustsAttacker === true ? { GATEWAY_TRUSTED_PROXIES: `${ATTACKER_ADDRESS}/32` } : {},
  });
  const pid = child.pid ?? 0;
  await Promise.all(WARM_UP.map((visitor) => visit(visitor, { port, timeoutMs }, 1)));
  const visitAll = (seconds: number) =>
    Promise.all([
      visit(VISITORS[scenario.visitor ?? 'stranger'], { port, timeoutMs }, seconds),
      visit(CONTROL, { port: upstreamPort, timeoutMs }, seconds),
    ]);
  const [alone] = await visitAll(aloneSeconds);

  const keysBefore = await redis.client.dbsize();
  let keysMax = 0;
  // Sample the number of keys, because they expire at the end of their window.
  const watch = setInterval(async () => {
    keysMax = Math.max(keysMax, await redis.client.dbsize().catch(() => 0));
  }, SAMPLE_MS);
  processes.teardown(() => clearInterval(watch));
  const began = Date.now();
  // The attack lasts until the visitor's last request has a reply or has failed.
  const secondsMax = attackSeconds + (HEAD_START_MS + 2 * timeoutMs) / 1000;
  const attacker = await startAttack(processes, scenario.name, port, secondsMax);
  await sleep(HEAD_START_MS);
  const [[attacked, direct]] = await Promise.all([
    visitAll(attackSeconds),
    store === 'frozen' ? freeze(redis) : undefined,
  ]);
  await attacker.stop();
  const { admitted = 0, smuggled = 0 } = await countsOf(upstreamPort);
  return {
    ...{ alone, attacked, admitted, smuggled },
    attack: JSON.parse(attacker.output().trim().split('\n').at(-1) ?? ''),
    directP99Ms: direct.p99Ms,
    died: child.exitCode !== null || child.signalCode !== null,
    rssPeakMb: peakMbOf([pid]),
    redisKeys: Math.max(0, keysMax - keysBefore),
    bans: await redis.client.hlen(ROWS_KEY),
    minutes: Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1,
  };
}

/** Starts an attack in a process of its own. It prints its counts at its end. */
export function startAttack(
  processes: Processes,
  name: string,
  port: number,
  seconds: number,
): Promise<Started> {
  const args = [join(BENCH, 'abuse', 'scenarios.ts'), name, String(port), String(seconds)];
  return processes.node(args, /attacking/);
}

async function freeze(redis: RedisServer): Promise<void> {
  redis.freeze();
  await sleep(TROUBLE_MS);
  redis.thaw();
}
