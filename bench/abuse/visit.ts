/**
 * Runs one scenario on one target: starts new processes, measures the visitor alone, then the visitor during the
 * attack.
 */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processes } from '#bench/run/processes.ts';
import { BENCH } from '#bench/run/programs.ts';
import { DURABLE, type RedisServer, startRedis } from '#bench/run/redis.ts';
import { countsOf, startUpstream } from '#bench/run/upstream.ts';
import { peakMbOf } from '#bench/run/usage.ts';
import { BANS_KEY } from '#gateway/operate/control/scripts.ts';
import { freePort } from '#test/support/ports.ts';
import { startSlowProxy } from '#test/support/slow-proxy.ts';
import type { AttackCounts } from './attacker.ts';
import type { AbuseScenario, StoreTrouble } from './scenario.ts';
import { FLOODGATE, type Target } from './targets.ts';
import { CONTROL, VISITORS, type VisitFigures, visit, WARM_UP } from './visitor.ts';

const SAMPLE_MS = 250;
/** The visitor starts this long after the attack, so that the attack has reached its full rate. */
const HEAD_START_MS = 500;
const TROUBLE_MS = 2000;
const RESTART_MS = 500;
const GARBLED_EVERY = 50;

interface Trouble {
  readonly redisArgs?: readonly string[];
  /** Disturbs Redis during the attack. */
  readonly disturb?: (redis: RedisServer, garbler: Garbler) => Promise<void>;
}

const TROUBLES: Readonly<Record<StoreTrouble, Trouble>> = {
  frozen: { disturb: (redis) => redis.freeze(TROUBLE_MS) },
  restarted: { redisArgs: DURABLE, disturb: (redis) => redis.killAndRestart(RESTART_MS) },
  garbled: { disturb: (_, garbler) => garbler.garble() },
  // With this policy, a full Redis refuses writes instead of removing keys.
  small: { redisArgs: ['--maxmemory', '12mb', '--maxmemory-policy', 'noeviction'] },
};

export interface VisitPlan {
  readonly aloneSeconds: number;
  readonly attackSeconds: number;
  /** A request of the visitor without a reply after this time has failed. */
  readonly replyMsMax: number;
  /** Additional settings of Floodgate. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface AbuseResult {
  readonly target: string;
  readonly alone: VisitFigures;
  readonly attacked: VisitFigures;
  /** p99 of requests sent directly to the same upstream during the attack. */
  readonly directP99Ms: number;
  /** p99 of requests to a server that is not attacked, during the attack. It shows how busy the machine is. */
  readonly machineP99Ms: number;
  readonly rssPeakMb: number;
  /** Maximum number of keys that the attack added. null without Redis. */
  readonly redisKeys: number | null;
  readonly admitted: number;
  readonly smuggled: number;
  /** Number of clients that are banned at the end. null without Redis. */
  readonly bans: number | null;
  /** Number of minutes of the clock in which the attack sent requests. */
  readonly minutes: number;
  readonly attack: AttackCounts;
  /** How the target ended. null if it is still running. */
  readonly died: string | null;
}

export async function runOn(
  target: Target,
  scenario: AbuseScenario,
  { aloneSeconds, attackSeconds, replyMsMax: timeoutMs, settings = {} }: VisitPlan,
  processes: Processes,
): Promise<AbuseResult> {
  const { isTls = false, store } = scenario;
  const { redisArgs, disturb } = store === undefined ? {} : TROUBLES[store];
  await using ends = new AsyncDisposableStack();
  const upstreamAt = async (): Promise<number> => {
    const port = await freePort();
    const upstream = await startUpstream(processes, port);
    ends.defer(() => upstream.stop('SIGKILL'));
    return port;
  };
  const upstreamPort = await upstreamAt();
  const bystanderPort = await upstreamAt();
  const redis = target === FLOODGATE ? await startRedis(processes, redisArgs) : null;
  ends.defer(() => redis?.stop());
  const garbler = new Garbler();
  const owner = { teardown: (end: () => void) => ends.defer(end) };
  const proxy =
    redis === null || store !== 'garbled'
      ? null
      : await startSlowProxy(owner, redis.port, (piece) => garbler.pass(piece));
  const redisPort = (proxy ?? redis)?.port ?? 0;
  const port = await freePort();
  const server = await target.start({ processes, port, upstreamPort, redisPort, settings }, scenario);
  // Do not wait for requests that hang after an attack. But NGINX needs SIGTERM to end its worker.
  ends.defer(() => server.stop(target === FLOODGATE ? 'SIGKILL' : 'SIGTERM'));
  await Promise.all(WARM_UP.map((visitor) => visit(visitor, { port, isTls, timeoutMs }, 1)));

  const visitAll = (seconds: number) =>
    Promise.all([
      visit(VISITORS[scenario.visitor ?? 'stranger'], { port, isTls, timeoutMs }, seconds),
      visit(CONTROL, { port: upstreamPort, timeoutMs }, seconds),
      visit(CONTROL, { port: bystanderPort, timeoutMs }, seconds),
    ]);
  const [alone] = await visitAll(aloneSeconds);

  const keysBefore = (await keysIn(redis)) ?? 0;
  let keysMax = 0;
  // Sample the number of keys, because they expire at the end of their window.
  const watch = setInterval(async () => {
    keysMax = Math.max(keysMax, (await keysIn(redis)) ?? 0);
  }, SAMPLE_MS);
  ends.defer(() => clearInterval(watch));
  const began = Date.now();
  // The attack lasts until the visitor's last request has a reply or has failed.
  const secondsMax = attackSeconds + (HEAD_START_MS + 2 * timeoutMs) / 1000;
  const args = [join(BENCH, 'abuse', 'scenarios.ts'), scenario.name, String(port), String(secondsMax)];
  const counts = Promise.withResolvers<AttackCounts>();
  const attacker = await processes.node('the attacker', args, {
    readyText: 'attacking',
    onMessage: (message) => counts.resolve(message as AttackCounts),
  });
  ends.defer(() => attacker.stop('SIGKILL'));
  await sleep(HEAD_START_MS);
  const [[attacked, direct, machine]] = await Promise.all([
    visitAll(attackSeconds),
    redis === null ? undefined : disturb?.(redis, garbler),
  ]);
  await attacker.stop();
  // The attacker's message may arrive after its process has ended.
  const failure = setTimeout(
    () => counts.reject(new Error(`the attacker failed: ${attacker.output()}`)),
    1000,
  );
  const attack = await counts.promise.finally(() => clearTimeout(failure));
  const { admitted = 0, smuggled = 0 } = await countsOf(upstreamPort);
  return {
    ...{ target: target.name, alone, attacked, attack, admitted, smuggled },
    ...{ directP99Ms: direct.p99Ms, machineP99Ms: machine.p99Ms, died: server.ending() },
    rssPeakMb: peakMbOf([server.pid]),
    redisKeys: redis === null ? null : Math.max(0, keysMax - keysBefore),
    bans: redis === null ? null : await redis.client.zcard(BANS_KEY).catch(() => null),
    minutes: Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1,
  };
}

/** @returns null while Redis does not answer */
async function keysIn(redis: RedisServer | null): Promise<number | null> {
  return redis === null ? null : redis.client.dbsize().catch(() => null);
}

/** Damages one decision in fifty without changing its length. */
class Garbler {
  #isOn = false;
  #decisions = 0;

  async garble(): Promise<void> {
    this.#isOn = true;
    await sleep(TROUBLE_MS);
    this.#isOn = false;
  }

  /** Damages the piece if its turn has come. @returns the delay in milliseconds, which is 0 */
  pass(piece: Buffer): number {
    // The text of a decision begins with a bracket, after its length.
    const at = piece.indexOf('\r\n[');
    if (this.#isOn && at > 0 && ++this.#decisions % GARBLED_EVERY === 0) piece.fill('{', at + 2, at + 3);
    return 0;
  }
}
