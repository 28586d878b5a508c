/**
 * `npm run bench -- soak`: runs mixed traffic for a long time. It exceeds all limits of the shipped policies, together
 * with uploads, streams, tunnels, aborts and garbage. Meanwhile Redis freezes, is killed and comes back, and policies
 * are edited.
 */
import { command } from '#bench/command.ts';
import { policyFile, startGateway } from '#bench/peers/floodgate.ts';
import { Client } from '#bench/run/client.ts';
import { Processes } from '#bench/run/processes.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';
import { startUpstream } from '#bench/run/upstream.ts';
import { memoryOf } from '#bench/run/usage.ts';
import { driveMinute } from '#bench/soak/limits.ts';
import { startMixed } from '#bench/soak/mixed.ts';
import { SoakTally } from '#bench/soak/tally.ts';
import { disturb, policies } from '#bench/soak/troubles.ts';
import { whole } from '#shared/cli/command.ts';
import { freePort } from '#test/support/ports.ts';
import { startRedis } from '#test/support/redis.ts';

/** Every write is on the disk before it is acknowledged, so a restart loses nothing. */
const DURABLE = ['--appendonly', 'yes', '--appendfsync', 'always'];
/**
 * Time limit of a reply. It is long, because a pause of the machine is not a fault. The report has the slowest reply.
 */
const REPLY_MS_MAX = 10_000;

/** Returns the number of requests that all processes of the gateway have decided without Redis. */
async function degradedRequests(adminPort: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
  const line = /^floodgate_store_degraded_total (\d+)$/m.exec(text);
  if (line === null) throw new Error('the gateway does not say how often it decided without Redis');
  return Number(line[1]);
}

export const SOAK = command({
  describe: 'Exceeds all limits while Redis fails; exits with 1 after a wrong reply',
  options: {
    minutes: { parse: whole(1, 1440), default: '20', describe: 'Duration in minutes' },
    workers: { parse: whole(1, 8), default: '2', describe: 'Number of gateway processes' },
  },
  async run({ minutes, workers }) {
    assertInstalled(['redis-server']);
    printMachine();
    await using processes = new Processes();
    const upstreamPort = await startUpstream(processes);
    const redis = await startRedis(processes, ['--dir', processes.folder, ...DURABLE]);
    const [port, adminPort] = [await freePort(), await freePort()];
    const { child, output } = await startGateway({
      ...{ processes, port, upstreamPort, redisPort: redis.port, workers, policies: policies(0) },
      env: {
        GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32',
        GATEWAY_ADMIN_PORT: String(adminPort),
        LOG_LEVEL: 'error',
      },
    });
    const memory = () => memoryOf([child.pid ?? 0]);
    const tally = new SoakTally();
    const options = { ports: [port], timeoutMs: REPLY_MS_MAX };
    const clients = { plain: new Client(options), mixed: new Client(options) };
    const endMixed = startMixed({ clients, port, tally });
    const driven = { clients, upstreamPort, tally, workers, degraded: () => degradedRequests(adminPort) };
    const [beganMs, forMs] = [Date.now(), minutes * 60_000];
    let atHalfTime = memory();
    // Use the rest of the current minute to warm up.
    let trouble = 'no trouble';
    await driveMinute(driven);
    for (let minute = 1; ; minute++) {
      process.stderr.write(`${new Date().toISOString()}: ${trouble}; ${tally}\n`);
      const passedMs = Date.now() - beganMs;
      if (passedMs >= forMs) break;
      if (passedMs < forMs / 2) atHalfTime = memory();
      const troubles = disturb(processes, redis, policyFile(port), minute);
      [trouble] = await Promise.all([troubles, driveMinute(driven)]);
    }
    await endMixed();
    if (child.exitCode !== null || child.signalCode !== null)
      tally.fault('the gateway ended', output().slice(-500));
    printTable(tally.report(atHalfTime, memory()));
    return tally.isRight;
  },
});
