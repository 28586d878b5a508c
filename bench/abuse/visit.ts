/** One scenario on one target: fresh processes, the visitor alone, then the visitor beside the attack. */
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
/** The visitor's figures begin when the attack is in full swing. */
const HEAD_START_MS = 500;
const TROUBLE_MS = 2000;
const RESTART_MS = 500;
const GARBLED_EVERY = 50;

interface Trouble {
  readonly redisArgs?: readonly string[];
  /** Comes with the attack. */
  readonly disturb?: (redis: RedisServer, garbler: Garbler) => Promise<void>;
}

const TROUBLES: Readonly<Record<StoreTrouble, Trouble>> = {
  frozen: { disturb: (redis) => redis.freeze(TROUBLE_MS) },
  restarted: { redisArgs: DURABLE, disturb: (redis) => redis.killAndRestart(RESTART_MS) },
  garbled: { disturb: (_, garbler) => garbler.garble() },
  // It refuses writes instead of removing keys.
  small: { redisArgs: ['--maxmemory', '12mb', '--maxmemory-policy', 'noeviction'] },
};

export interface VisitPlan {
  readonly aloneSeconds: number;
  readonly attackSeconds: number;
  /** A request of the visitor without a reply after this time has failed. */
  readonly replyMsMax: number;
  /** More settings of Floodgate. */
  readonly settings?: Readonly<Record<string, string>>;
}

export interface AbuseResult {
  readonly target: string;
  readonly alone: VisitFigures;
  readonly attacked: VisitFigures;
  /** Requests that went to the same upstream past the target, during the attack. */
  readonly directP99Ms: number;
  /** Requests to a server that nobody attacked, during the attack. */
  readonly machineP99Ms: number;
  readonly rssPeakMb: number;
  /** null without Redis. */
  readonly redisKeys: number | null;
  readonly admitted: number;
  readonly smuggled: number;
  /** Clients that are banned at the end. null without Redis. */
  readonly bans: number | null;
  /** Minutes of the clock in which the attack sent requests. */
  readonly minutes: number;
  readonly attack: AttackCounts;
  /** null if the target is still there. */
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
  // Nobody waits for what hangs after an attack. But NGINX has to end its worker.
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
  // At the end of their window they are gone.
  const watch = setInterval(async () => {
    keysMax = Math.max(keysMax, (await keysIn(redis)) ?? 0);
  }, SAMPLE_MS);
  ends.defer(() => clearInterval(watch));
  const began = Date.now();
  // It goes on until the visitor's last request has its reply, or will not get one.
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
  // Its message may arrive after its end.
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

/** null while Redis does not answer. */
async function keysIn(redis: RedisServer | null): Promise<number | null> {
  return redis === null ? null : redis.client.dbsize().catch(() => null);
}

/** Makes nonsense of the same length of one decision in fifty. */
class Garbler {
  #isOn = false;
  #decisions = 0;

  async garble(): Promise<void> {
    this.#isOn = true;
    await sleep(TROUBLE_MS);
    this.#isOn = false;
  }

  /** @returns 0: nothing is delayed */
  pass(piece: Buffer): number {
    // The text of a decision begins with a bracket, after its length.
    const at = piece.indexOf('\r\n[');
    if (this.#isOn && at > 0 && ++this.#decisions % GARBLED_EVERY === 0) piece.fill('{', at + 2, at + 3);
    return 0;
  }
}
