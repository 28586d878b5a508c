/**
 * `npm run bench`: what a request costs here, beside what it costs elsewhere.
 *
 * Upstream, Redis, the gateway and its peers run on loopback; each scenario visits all of them in turn for several
 * rounds. The figure is CPU time per request of the serving processes, because elapsed time on a shared machine says
 * more about the neighbours. Results go to the terminal and to bench/results/ as JSON and as a page with charts.
 */
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type AbuseOptions, abuse } from './abuse/run.ts';
import { loadTarget } from './load-test.ts';
import { describeMachine } from './machine.ts';
import { type BenchOptions, readOptions, USAGE, UsageError } from './options.ts';
import { canMeasure } from './proc.ts';
import { Processes } from './processes.ts';
import { Progress } from './progress.ts';
import { judge } from './report/goals.ts';
import { page } from './report/html.ts';
import { summarise } from './report/summary.ts';
import { goalText, machineText, scenarioText } from './report/text.ts';
import { Runner, type ScenarioResult } from './runner.ts';
import { SCENARIOS } from './scenarios.ts';
import { BENCH, installNpmPeers, installPrograms, missing } from './tools.ts';

async function bench(options: BenchOptions): Promise<void> {
  if (!canMeasure()) throw new UsageError('CPU time per request is read from /proc: run this on Linux');
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  if (options.install) {
    installPrograms(say);
    installNpmPeers(say);
  }
  const noRedis = missing('redis-server', 'redis-server');
  if (noRedis !== null) throw new UsageError(`every limiter here needs a Redis: ${noRedis}`);

  const scenarios = SCENARIOS.filter(({ name }) => options.only.includes(name));
  const steps = scenarios.reduce((sum, { peers }) => sum + peers.length * (options.rounds + 1), 0);
  const processes = new Processes();
  const progress = new Progress(steps);
  onInterrupt(processes);
  const machine = describeMachine(new Date());
  process.stdout.write(`${machineText(machine)}\n\n`);
  const results: ScenarioResult[] = [];
  try {
    const runner = new Runner(options, processes, progress);
    for (const scenario of scenarios) {
      const result = await runner.run(scenario);
      results.push(result);
      progress.end();
      process.stdout.write(`${scenarioText(summarise(result))}\n\n`);
    }
  } finally {
    progress.end();
    await processes.stopAll();
  }
  const summaries = results.map(summarise);
  const goals = judge(results);
  if (goals.length > 0) process.stdout.write(`${goalText(goals)}\n\n`);
  const folder = join(BENCH, 'results');
  mkdirSync(folder, { recursive: true });
  const name = join(folder, machine.at.replaceAll(/[:.]/g, '-'));
  writeFileSync(`${name}.json`, `${JSON.stringify({ machine, goals, summaries, results }, null, 1)}\n`);
  writeFileSync(`${name}.html`, page(machine, summaries, goals));
  process.stdout.write(`written to ${name}.json and ${name}.html\n`);
}

async function abuseBench(options: AbuseOptions): Promise<void> {
  const processes = new Processes();
  onInterrupt(processes);
  await abuse(options, processes);
}

/** Whatever ends the bench ends what it started. */
function onInterrupt(processes: Processes): void {
  const stop = (): void => {
    processes.stopAll().finally(() => process.exit(130));
  };
  process.once('SIGINT', stop);
  process.once('SIGTERM', stop);
  process.once('exit', () => processes.killNow());
}

try {
  const options = readOptions(process.argv.slice(2));
  if (options.kind === 'help') process.stdout.write(USAGE);
  else if (options.kind === 'abuse') await abuseBench(options.abuse);
  else if (options.kind === 'target') await loadTarget(options.target);
  else await bench(options.bench);
} catch (error) {
  process.stderr.write(error instanceof UsageError ? `${error.message}\n` : `${(error as Error).stack}\n`);
  process.exitCode = 1;
}
