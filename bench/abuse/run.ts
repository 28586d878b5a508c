/** Runs one attack: starts new processes, measures the visitor alone, then the visitor during the attack. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { policiesOf, raiseLimits, startGateway } from '#bench/peers/floodgate.ts';
import { Processes } from '#bench/run/processes.ts';
import { ROOT } from '#bench/run/programs.ts';
import { countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf } from '#bench/run/usage.ts';
import { ROWS_KEY } from '#gateway/bans/scripts.ts';
import { freePort } from '#test/support/ports.ts';
import type { Started } from '#test/support/process.ts';
import { type RedisServer, startRedis } from '#test/support/redis.ts';
import type { AttackCounts } from './attacker.ts';
import { type Attack, attackOf } from './attacks.ts';
import { beginHistories } from './histories.ts';
import {
  CONTROL,
  REGULARS,
  VISITORS,
  type VisitFigures,
  visit,
  visitAsNewcomers,
  WARM_UP,
} from './visitor.ts';

const SAMPLE_MS = 250;
/** The visitor starts this long after the attack, so that the attack has reached its full rate. */
const HEAD_START_MS = 500;
const TROUBLE_MS = 2000;

interface Plan {
  readonly aloneSeconds: number;
  readonly attackSeconds: number;
  /** A request of the visitor without a reply after this time has failed. */
  readonly replyMsMax: number;
}

export interface AbuseResult {
  readonly alone: VisitFigures;
  readonly attacked: VisitFigures;
  /** Share of the newcomers beside the regulars that was served, from 0 to 1. */
  readonly newcomersServed: number;
  /** p99 of requests sent directly to the same upstream during the attack. */
  readonly directP99Ms: number;
  readonly rssPeakMb: number;
  /** Maximum number of keys that the attack added. */
  readonly redisKeys: number;
  readonly admitted: number;
  readonly smuggled: number;
  /** Number of clients that are banned at the end. */
  readonly bans: number;
  /** Number of windows of the clock in which the attack sent requests. */
  readonly windows: number;
  readonly attack: AttackCounts;
  /** Whether a gateway has ended. */
  readonly died: boolean;
}

export async function runAttack(name: string, plan: Plan): Promise<AbuseResult> {
  const { aloneSeconds, attackSeconds, replyMsMax: timeoutMs } = plan;
  const attack = attackOf(name);
  const visitor = attack.visitor ?? 'stranger';
  await using processes = new Processes();
  const upstreamPort = await startUpstream(processes);
  const redis = await startRedis(processes);
  if (attack.redis === 'week-old') await beginHistories(redis, REGULARS);
  const { ports, gateways } = await startGateways(processes, attack, upstreamPort, redis);
  const place = { ports, timeoutMs };
  await Promise.all(WARM_UP.map((one) => visit(one, place, 1)));
  const visitAll = (seconds: number) =>
    Promise.all([
      visit(VISITORS[visitor], place, seconds),
      visit(CONTROL, { ports: [upstreamPort], timeoutMs }, seconds),
    ]);
  const [alone] = await visitAll(aloneSeconds);

  const keysBefore = await redis.client.dbsize();
  let keysMax = 0;
  // Sample the number of keys, because they expire at the end of their window.
  const watch = setInterval(async () => {
    keysMax = Math.max(keysMax, await redis.client.dbsize().catch(() => 0));
  }, SAMPLE_MS);
  processes.teardown(() => clearInterval(watch));
  const windowMs = (attack.goals?.windowSeconds ?? 60) * 1000;
  const firstWindow = Math.floor(Date.now() / windowMs);
  // The attack lasts until the visitor's last request has a reply or has failed.
  const secondsMax = attackSeconds + (HEAD_START_MS + 2 * timeoutMs) / 1000;
  const program = [join(import.meta.dirname, 'attacker.ts'), name, String(secondsMax), ...ports.map(String)];
  const attacker = await processes.node(program, /attacking/);
  await sleep(HEAD_START_MS);
  const [[attacked, direct], newcomersServed] = await Promise.all([
    visitAll(attackSeconds),
    visitor === 'regulars' ? visitAsNewcomers(place, attackSeconds) : 1,
    attack.redis === 'frozen' ? freeze(redis) : undefined,
  ]);
  await attacker.stop();
  const { admitted = 0, smuggled = 0 } = await countsOf(upstreamPort);
  return {
    ...{ alone, attacked, newcomersServed, admitted, smuggled },
    attack: JSON.parse(attacker.output().trim().split('\n').at(-1) ?? ''),
    directP99Ms: direct.p99Ms,
    died: gateways.some(({ child }) => child.exitCode !== null || child.signalCode !== null),
    rssPeakMb: peakMbOf(gateways.map(({ child }) => child.pid ?? 0)),
    redisKeys: Math.max(0, keysMax - keysBefore),
    bans: await redis.client.hlen(ROWS_KEY),
    windows: Math.floor(Date.now() / windowMs) - firstWindow + 1,
  };
}

async function startGateways(
  processes: Processes,
  { limits, policies = [], settings = {}, gateways: count = 1 }: Attack,
  upstreamPort: number,
  redis: RedisServer,
) {
  const text = policiesOf(ROOT, (file) => {
    if (limits !== 'shipped') raiseLimits(file);
    file.policies.push(...policies);
  });
  const ports: number[] = [];
  const gateways: Started[] = [];
  for (let i = 0; i < count; i++) {
    const port = await freePort();
    const launch = { processes, port, upstreamPort, redisPort: redis.port, policies: text, env: settings };
    ports.push(port);
    gateways.push(await startGateway(launch));
  }
  return { ports, gateways };
}

async function freeze(redis: RedisServer): Promise<void> {
  redis.freeze();
  await sleep(TROUBLE_MS);
  redis.thaw();
}
