/**
 * `npm run soak -- [--minutes N]`: everything at once for a stated time, with one process and then with two. Every limit
 * of the shipped table is driven over its edge, beside uploads, streams, tunnels, aborts and garbage, while Redis stands
 * still, dies and comes back, and the policies are edited. Ends with 1 after a wrong answer or an admission too many.
 */
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '#test/support/ports.ts';
import { describeMachine } from '../machine.ts';
import { Processes } from '../processes.ts';
import { machineText, rounded } from '../report/text.ts';
import { quantile } from '../statistics.ts';
import { launchGateway } from '../targets/gateway.ts';
import { BENCH, missing, NODE, ROOT } from '../tools.ts';
import { driveMinute } from './limits.ts';
import { type MemoryFigures, watchMemory } from './memory.ts';
import { startMixed } from './mixed.ts';
import { Client } from './request.ts';
import { limitedRoutes } from './routes.ts';
import { Tally } from './tally.ts';
import { SoakStore, Troubles, writePolicies } from './trouble.ts';

const USAGE = `npm run soak -- [--minutes N] [--workers 1,2]

  --minutes N      for all runs together, from 2 to 1440 (default 20)
  --workers LIST   one run for each number of processes (default 1,2)
`;
const IDENTITIES_PER_ROUTE = 3;

interface Soaked {
  readonly workers: number;
  readonly tally: Tally;
  readonly memory: MemoryFigures;
}

async function soak(workers: number, minutes: number, processes: Processes): Promise<Soaked> {
  const upstreamPort = await freePort();
  const upstreamArgs = [join(BENCH, 'abuse', 'upstream.ts'), String(upstreamPort)];
  const upstream = await processes.start('the upstream', NODE, upstreamArgs, { port: upstreamPort });
  const store = new SoakStore(processes, await freePort());
  await store.start();
  const policies = join(processes.directory, `soak-policies-${workers}.yaml`);
  writePolicies(policies, 0);
  const port = await freePort();
  const adminPort = await freePort();
  const gateway = await launchGateway(processes, {
    ...{ root: ROOT, port, upstreamPort, redisPort: store.port, policies, workers },
    env: {
      GATEWAY_TRUSTED_PROXIES: '127.0.0.1/32',
      GATEWAY_ADMIN_PORT: String(adminPort),
      LOG_LEVEL: 'error',
    },
  });
  const tally = new Tally();
  const client = new Client(port);
  const troubles = new Troubles(store, policies);
  const endMemory = watchMemory(gateway.pid);
  const endMixed = startMixed({ client, port, tally });
  const context = {
    ...{ client, upstreamPort, tally, routes: limitedRoutes(), identitiesPerRoute: IDENTITIES_PER_ROUTE },
    workers,
    degraded: () => degradedRequests(adminPort),
  };
  const untilMs = Date.now() + minutes * 60_000;
  const say = (what: string): void =>
    void process.stderr.write(
      `${workers} worker${workers === 1 ? '' : 's'}, ${new Date().toISOString()}: ${what}; ` +
        `${tally.answers} answers, ${tally.wrongAnswers} wrong, ${tally.overAdmitted} over-admitted\n`,
    );
  // The minute that has begun already is for warming up: no trouble yet.
  await driveMinute(context);
  say('no trouble');
  while (Date.now() < untilMs) {
    const [what] = await Promise.all([troubles.minute(), driveMinute(context)]);
    say(what);
  }
  await endMixed();
  const memory = endMemory();
  const ended = gateway.ending();
  if (ended !== null) tally.fault(`the gateway ended: ${ended}`, gateway.output().slice(-500));
  client.close();
  await gateway.stop();
  await store.stop();
  await upstream.stop('SIGKILL');
  return { workers, tally, memory };
}

/** Requests that the gateway has decided without Redis, in all of its processes. */
async function degradedRequests(adminPort: number): Promise<number> {
  const response = await fetch(`http://127.0.0.1:${adminPort}/metrics`, {
    signal: AbortSignal.timeout(2000),
  });
  const line = /^floodgate_store_degraded_total (\d+)$/m.exec(await response.text());
  if (line === null) throw new Error('the gateway does not say how often it decided without Redis');
  return Number(line[1]);
}

function report({ workers, tally, memory }: Soaked): string {
  const kinds = [...tally.done].map(([kind, count]) => `${count} × ${kind}`).join(', ');
  const wrong = [...tally.wrong].flatMap(([kind, { count, examples }]) => [
    `  ${count} × ${kind}`,
    ...examples.map((example) => `      ${example}`),
  ]);
  return [
    `${workers} worker${workers === 1 ? '' : 's'}`,
    `  answers            ${tally.answers}: ${kinds}`,
    `  limits             ${tally.admitted} admitted, ${tally.denied} denied`,
    `  counting alone     ${tally.deniedAlone} denied before the limit, ${tally.admittedAlone} admitted beyond it, as it may happen`,
    `  late               ${tally.late} answers came after the turn of their minute: the machine stood still`,
    `  wrong answers      ${tally.wrongAnswers}`,
    `  over-admission     ${tally.overAdmitted}`,
    `  p50, p99, slowest  ${[0.5, 0.99, 1].map((part) => `${rounded(quantile(tally.latenciesMs, part), 1)} ms`).join(', ')}`,
    `  memory             ${rounded(memory.endMb, 0)} MB at the end, peak of a process ${rounded(memory.peakMb, 0)} MB, slope of the second half ${rounded(memory.slopeMbPerHour, 1)} MB/hour`,
    ...wrong,
  ].join('\n');
}

function optionsOf(argv: readonly string[]): { minutes: number; workers: number[] } {
  const { values } = parseArgs({
    args: [...argv],
    options: { minutes: { type: 'string', default: '20' }, workers: { type: 'string', default: '1,2' } },
  });
  const minutes = Number(values.minutes);
  const workers = values.workers.split(',').map(Number);
  if (!(minutes >= 2 && minutes <= 1440))
    throw new TypeError(`--minutes is "${values.minutes}"; give 2 to 1440`);
  if (!workers.every((count) => Number.isInteger(count) && count >= 1 && count <= 8))
    throw new TypeError(`--workers is "${values.workers}"; give numbers from 1 to 8, such as 1,2`);
  return { minutes, workers };
}

const processes = new Processes();
for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => process.exit(130));
process.once('exit', () => processes.killNow());
try {
  const { minutes, workers } = optionsOf(process.argv.slice(2));
  const noRedis = missing('redis-server', 'redis-server');
  if (noRedis !== null) throw new TypeError(noRedis);
  process.stdout.write(`${machineText(describeMachine(new Date()))}\n\n`);
  for (const count of workers) {
    const soaked = await soak(count, minutes / workers.length, processes);
    process.stdout.write(`${report(soaked)}\n\n`);
    if (soaked.tally.wrongAnswers > 0 || soaked.tally.overAdmitted > 0) process.exitCode = 1;
  }
  await processes.stopAll();
} catch (error) {
  const isUsage = error instanceof TypeError;
  process.stderr.write(isUsage ? `${error.message}\n${USAGE}` : `${(error as Error).stack}\n`);
  process.exitCode = 1;
}
