/** One scenario on one target: fresh processes, the visitor alone, then the visitor beside the attack. */
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import type { Processes, Started } from '#bench/run/processes.ts';
import { BENCH } from '#bench/run/programs.ts';
import { DURABLE, type RedisServer, startRedis } from '#bench/run/redis.ts';
import { startUpstream, statsOf } from '#bench/run/upstream.ts';
import { peakMbOf } from '#bench/run/usage.ts';
import { BANS_KEY } from '#gateway/operate/control/scripts.ts';
import { freePort } from '#test/support/ports.ts';
import { startSlowProxy } from '#test/support/slow-proxy.ts';
import type { AttackCounts } from './attacker.ts';
import type { AbuseScenario, StoreTrouble } from './scenario.ts';
import type { Target } from './targets.ts';
import { CONTROL, VISITORS, type VisitFigures, visit, WARM_UP } from './visitor.ts';

const SAMPLE_MS = 250;
/** The visitor's figures begin when the attack is in full swing. */
const HEAD_START_MS = 500;
const TROUBLE_MS = 2000;
const RESTART_MS = 500;
const GARBLED_EVERY = 50;

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
  const { isTls = false, store: trouble } = scenario;
  const stops: (() => unknown)[] = [];
  const upstreamAt = async (): Promise<number> => {
    const port = await freePort();
    const upstream = await startUpstream(processes, port);
    stops.push(() => upstream.stop('SIGKILL'));
    return port;
  };
  try {
    const upstreamPort = await upstreamAt();
    const bystanderPort = await upstreamAt();
    const redis = target.usesRedis ? await startRedis(processes, redisOptions(trouble)) : null;
    stops.push(() => redis?.stop());
    const garbler = new Garbler();
    const garbled =
      redis !== null && trouble === 'garbled'
        ? await startSlowProxy({ teardown: (end) => stops.push(end) }, redis.port, (piece) =>
            garbler.garble(piece),
          )
        : null;
    const port = await freePort();
    const redisPort = garbled?.port ?? redis?.port ?? 0;
    const server = await target.start({ processes, port, upstreamPort, redisPort, settings }, scenario);
    stops.push(() => server.stop(target.stopSignal));
    await Promise.all(WARM_UP.map((visitor) => visit(visitor, { port, isTls, timeoutMs }, 1)));

    const visitBoth = (seconds: number) =>
      Promise.all([
        visit(VISITORS[scenario.visitor ?? 'stranger'], { port, isTls, timeoutMs }, seconds),
        visit(CONTROL, { port: upstreamPort, timeoutMs }, seconds),
        visit(CONTROL, { port: bystanderPort, timeoutMs }, seconds),
      ]);
    const [alone] = await visitBoth(aloneSeconds);

    const keysBefore = (await keysIn(redis)) ?? 0;
    const endWatch = watch(server.pid, redis);
    const began = Date.now();
    // It goes on until the visitor's last request has its reply, or will not get one.
    const secondsMax = attackSeconds + (HEAD_START_MS + 2 * timeoutMs) / 1000;
    const args = [join(BENCH, 'abuse', 'scenarios.ts'), scenario.name, String(port), String(secondsMax)];
    const attacker = await processes.node('the attacker', args, { readyText: 'attacking' });
    stops.push(() => attacker.stop('SIGKILL'));
    await sleep(HEAD_START_MS);
    const [[attacked, direct, machine]] = await Promise.all([
      visitBoth(attackSeconds),
      disturb(trouble, redis, garbler),
    ]);
    await attacker.stop();
    const attack = await countsOf(attacker);
    const peak = endWatch();
    return {
      ...{ target: target.name, alone, attacked, attack, ...(await statsOf(upstreamPort)) },
      ...{ directP99Ms: direct.p99Ms, machineP99Ms: machine.p99Ms, died: server.ending() },
      rssPeakMb: Math.max(peak.rssMb, peakMbOf([server.pid])),
      redisKeys: redis === null ? null : Math.max(0, peak.keys - keysBefore),
      bans: await bansIn(redis),
      minutes: Math.floor(Date.now() / 60_000) - Math.floor(began / 60_000) + 1,
    };
  } finally {
    for (const stop of stops.reverse()) await stop();
  }
}

/** A small Redis refuses writes instead of removing keys. */
function redisOptions(trouble: StoreTrouble | undefined): readonly string[] {
  if (trouble === 'small') return ['--maxmemory', '12mb', '--maxmemory-policy', 'noeviction'];
  return trouble === 'restarted' ? DURABLE : [];
}

/** null while Redis does not answer. */
function keysIn(redis: RedisServer | null): Promise<number | null> {
  return redis === null ? Promise.resolve(null) : redis.client.dbsize().catch(() => null);
}

function bansIn(redis: RedisServer | null): Promise<number | null> {
  return redis === null ? Promise.resolve(null) : redis.client.zcard(BANS_KEY).catch(() => null);
}

/** Makes nonsense of the same length of one decision in fifty. */
class Garbler {
  isOn = false;
  #decisions = 0;

  /** @returns 0: nothing is delayed */
  garble(piece: Buffer): number {
    // The text of a decision begins with a bracket, after its length.
    const at = piece.indexOf('\r\n[');
    if (this.isOn && at > 0 && ++this.#decisions % GARBLED_EVERY === 0) piece.fill('{', at + 2, at + 3);
    return 0;
  }
}

async function disturb(
  trouble: StoreTrouble | undefined,
  redis: RedisServer | null,
  garbler: Garbler,
): Promise<void> {
  if (trouble === 'frozen') await redis?.freeze(TROUBLE_MS);
  if (trouble === 'restarted') await redis?.killAndRestart(RESTART_MS);
  if (trouble !== 'garbled') return;
  garbler.isOn = true;
  await sleep(TROUBLE_MS);
  garbler.isOn = false;
}

/** Samples peaks that would be gone at the end. @returns ends it */
function watch(pid: number, redis: RedisServer | null): () => { rssMb: number; keys: number } {
  const peak = { rssMb: 0, keys: 0 };
  const timer = setInterval(async () => {
    peak.rssMb = Math.max(peak.rssMb, peakMbOf([pid]));
    peak.keys = Math.max(peak.keys, (await keysIn(redis)) ?? 0);
  }, SAMPLE_MS);
  return () => {
    clearInterval(timer);
    return peak;
  };
}

/** @throws Error when the attacker ended without a report */
async function countsOf(attacker: Started): Promise<AttackCounts> {
  // Its last output may arrive after its end.
  for (let i = 0; i < 50; i++) {
    const line = attacker
      .output()
      .split('\n')
      .findLast((text) => /^\{.*\}$/.test(text));
    if (line !== undefined) return JSON.parse(line);
    await sleep(20);
  }
  throw new Error(`the attacker failed:\n${attacker.output()}`);
}
