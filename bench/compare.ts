/**
 * `node bench/compare.ts OLD NEW`: did the gateway get dearer? OLD and NEW are commits or folders (`.` is the working
 * tree). Both run beside a plain node:http server that answers by itself; CPU per request is told as a ratio to that
 * server in the same rounds, which makes figures of different days comparable, and as the paired quotient of the two.
 * Half of the rounds have OLD first, the others, with processes of their own, NEW: who comes second has a handicap of up
 * to a tenth, and so has a process by the luck of its start.
 *
 * Options: --only SCENARIOS, --rounds N, --duration SECONDS. On demand, never part of the tests: time is not a promise.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { freePort } from '#test/support/ports.ts';
import { viaAutocannon } from './load/autocannon.ts';
import { wrk } from './load/wrk.ts';
import { measure, notTheJob, type Slice, type Subject, WARM_SECONDS } from './measure.ts';
import { Processes } from './processes.ts';
import { rounded } from './report/text.ts';
import { SCENARIOS, type Scenario } from './scenarios.ts';
import { pairedRatio, type Spread } from './statistics.ts';
import { startGateway } from './targets/gateway.ts';
import { startRedis } from './targets/redis.ts';
import { startUpstream } from './targets/upstream.ts';
import { BENCH, find, NODE, ROOT } from './tools.ts';

const DEFAULT_SCENARIOS = 'hot,keys-20k,denied,post-1k,uncovered';

interface Version {
  readonly name: string;
  readonly root: string;
  remove(): void;
}

/** A folder as it is, or a commit in a worktree of its own that goes away afterwards. */
function checkOut(name: string): Version {
  if (existsSync(join(name, 'gateway', 'main.ts'))) return { name, root: resolve(name), remove() {} };
  const parent = mkdtempSync(join(tmpdir(), 'floodgate-compare-'));
  const root = join(parent, 'tree');
  const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
  const remove = (): void => {
    git('worktree', 'remove', '--force', root);
    rmSync(parent, { recursive: true, force: true });
  };
  const added = git('worktree', 'add', '--detach', root, name);
  if (added.status !== 0) {
    remove();
    throw new Error(`${name} is neither a folder with a gateway nor a commit: ${added.stderr.trim()}`);
  }
  symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  return { name, root, remove };
}

type Trio = readonly [old: Slice, new_: Slice, echo: Slice];

class Comparison {
  readonly #processes: Processes;
  readonly #versions: readonly Version[];

  constructor(processes: Processes, versions: readonly Version[]) {
    this.#processes = processes;
    this.#versions = versions;
  }

  async run(scenario: Scenario, rounds: number, seconds: number): Promise<readonly Trio[]> {
    const [old, new_] = this.#versions;
    if (old === undefined || new_ === undefined) throw new Error('a comparison takes two versions');
    const oldFirst = await this.#start([old, new_], scenario, Math.ceil(rounds / 2), seconds);
    const newFirst = await this.#start([new_, old], scenario, Math.floor(rounds / 2), seconds);
    return [...oldFirst, ...newFirst.map(([first, second, echo]): Trio => [second, first, echo])];
  }

  /** @returns the slices of the first version, of the second, and of the server beside them */
  async #start(
    versions: readonly Version[],
    scenario: Scenario,
    rounds: number,
    seconds: number,
  ): Promise<readonly Trio[]> {
    if (rounds === 0) return [];
    const processes = this.#processes;
    const upstreamPort = await freePort();
    const stops: (() => Promise<void>)[] = [];
    const trios: Trio[] = [];
    try {
      const upstream = await startUpstream(processes, upstreamPort);
      stops.push(() => upstream.stop());
      const subjects: Subject[] = [];
      for (const { root } of versions) {
        const store = await startRedis(processes, await freePort());
        const port = await freePort();
        const launch = {
          processes,
          scenario,
          port,
          upstreamPort,
          redisPort: store.port,
          directory: processes.directory,
        };
        const { pid, stop } = await startGateway(launch, root);
        stops.push(stop, store.stop);
        subjects.push({ port, pids: [pid], store });
      }
      const port = await freePort();
      const echo = await processes.start(
        'echo',
        NODE,
        [join(BENCH, 'peers', 'upstream.mjs'), String(port), '{}'],
        { port },
      );
      stops.push(() => echo.stop());
      subjects.push({ port, pids: [echo.pid], store: null });

      const driver = find('wrk') === null ? viaAutocannon : wrk(processes.directory);
      for (const subject of subjects) await measure(subject, scenario, driver, WARM_SECONDS);
      for (let round = 0; round < rounds; round++) {
        const slices: Slice[] = [];
        for (let i = 0; i < subjects.length; i++) {
          const at = (i + round) % subjects.length;
          const subject = subjects[at];
          if (subject === undefined) continue;
          const slice = await measure(subject, scenario, driver, seconds);
          const fault = notTheJob(slice, scenario, subject.store !== null);
          if (fault !== null) throw new Error(`${versions[at]?.name} in ${scenario.name}: ${fault}`);
          slices[at] = slice;
        }
        const [old, new_, alone] = slices;
        if (old !== undefined && new_ !== undefined && alone !== undefined) trios.push([old, new_, alone]);
      }
    } finally {
      await Promise.all(stops.map((stop) => stop()));
    }
    return trios;
  }
}

function say(scenario: Scenario, trios: readonly Trio[]): void {
  const cpu = (at: 0 | 1 | 2): number[] => trios.map((trio) => trio[at].cpuUs);
  const redis = (at: 0 | 1): number[] => trios.map((trio) => trio[at].redisCpuUs);
  const text = ({ p25, median, p75 }: Spread): string =>
    `${rounded(median, 3)} (${rounded(p25, 3)}-${rounded(p75, 3)})`.padEnd(22);
  const cells = [
    scenario.name.padEnd(12),
    text(pairedRatio(cpu(0), cpu(2))),
    text(pairedRatio(cpu(1), cpu(2))),
    text(pairedRatio(cpu(1), cpu(0))),
    text(pairedRatio(redis(1), redis(0))),
    `${rounded(Math.min(...cpu(0)), 1)} -> ${rounded(Math.min(...cpu(1)), 1)} µs`,
  ];
  process.stdout.write(`${cells.join('  ')}\n`);
}

const { values, positionals } = parseArgs({
  allowPositionals: true,
  options: {
    only: { type: 'string', default: DEFAULT_SCENARIOS },
    rounds: { type: 'string', default: '10' },
    duration: { type: 'string', default: '2' },
  },
});
const [old, new_] = positionals;
const names = values.only.split(',');
const unknown = names.filter((name) => !SCENARIOS.some((scenario) => scenario.name === name));
if (
  old === undefined ||
  new_ === undefined ||
  unknown.length > 0 ||
  !(Number(values.rounds) >= 1) ||
  !(Number(values.duration) >= 1)
) {
  const why = unknown.length > 0 ? `unknown scenarios: ${unknown.join(', ')}\n` : '';
  process.stderr.write(
    `${why}usage: node bench/compare.ts OLD NEW [--only SCENARIOS] [--rounds N] [--duration SECONDS]\n`,
  );
  process.exit(1);
}

const processes = new Processes();
const versions: Version[] = [];
let ended = false;
async function end(): Promise<void> {
  if (ended) return;
  ended = true;
  await processes.stopAll();
  for (const version of versions) version.remove();
}
for (const signal of ['SIGINT', 'SIGTERM'] as const)
  process.once(signal, () => end().finally(() => process.exit(130)));

try {
  for (const name of [old, new_]) versions.push(checkOut(name));
  const heads = ['', 'OLD / echo', 'NEW / echo', 'NEW / OLD', 'Redis NEW / OLD'];
  process.stdout.write(`${heads.map((head, i) => head.padEnd(i === 0 ? 12 : 22)).join('  ')}  least CPU\n`);
  const comparison = new Comparison(processes, versions);
  for (const scenario of SCENARIOS.filter(({ name }) => names.includes(name))) {
    say(scenario, await comparison.run(scenario, Number(values.rounds), Number(values.duration)));
  }
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  await end();
}
