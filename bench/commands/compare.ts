/** `npm run bench -- compare OLD NEW`: compares the CPU time of two versions of the gateway. */
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { type Bench, command, names, UsageError, whole } from '#bench/command.ts';
import { SCENARIOS, type Scenario } from '#bench/costs/scenarios.ts';
import { type Candidate, faultOf, slice, startCandidate } from '#bench/costs/subject.ts';
import { startEcho, startUpstream } from '#bench/costs/upstream.ts';
import { FLOODGATE, policiesFor, startGateway } from '#bench/peers/floodgate.ts';
import { describeMachine } from '#bench/run/machine.ts';
import { inTurn, type Slice, WARM_SECONDS } from '#bench/run/measure.ts';
import { ROOT } from '#bench/run/programs.ts';
import { Report } from '#bench/run/report.ts';
import { pairedRatio, type Spread } from '#bench/run/statistics.ts';
import { rounded } from '#bench/run/table.ts';
import { freePort } from '#test/support/ports.ts';

const NAMES = SCENARIOS.map(({ name }) => name);
const USUAL = ['hot', 'keys-20k', 'denied', 'post-1k', 'uncovered'];
const HEAD = ['', 'OLD / echo', 'NEW / echo', 'NEW / OLD', 'Redis NEW / OLD', 'lowest CPU, µs'];

/** The slices of one round. */
type Trio = readonly [before: Slice, after: Slice, echo: Slice];

/** @param name a folder, or a commit, which gets a worktree of its own until the bench ends */
function checkOut(name: string): Candidate {
  const isFolder = existsSync(join(name, 'gateway', 'main.ts'));
  const parent = isFolder ? '' : mkdtempSync(join(tmpdir(), 'floodgate-compare-'));
  const root = isFolder ? resolve(name) : join(parent, 'tree');
  if (!isFolder) {
    const git = (...args: string[]) => spawnSync('git', args, { cwd: ROOT, encoding: 'utf8' });
    process.once('exit', () => {
      git('worktree', 'remove', '--force', root);
      rmSync(parent, { recursive: true, force: true });
    });
    const { status, stderr } = git('worktree', 'add', '--detach', root, name);
    if (status !== 0)
      throw new UsageError(`${name} is neither a folder with a gateway nor a commit: ${stderr.trim()}`);
    symlinkSync(join(ROOT, 'node_modules'), join(root, 'node_modules'));
  }
  const start: Candidate['start'] = (launch) =>
    startGateway({ ...launch, root, policies: policiesFor(launch, root) });
  return { ...FLOODGATE, name, label: name, start };
}

async function compare(
  { processes }: Bench,
  versions: readonly Candidate[],
  scenario: Scenario,
  { rounds, duration }: { readonly rounds: number; readonly duration: number },
): Promise<readonly Trio[]> {
  if (rounds === 0) return [];
  const { directory } = processes;
  const upstreamPort = await freePort();
  const upstream = await startUpstream(processes, upstreamPort);
  const running = [];
  for (const version of versions)
    running.push(await startCandidate(version, scenario, { processes, upstreamPort }));
  const port = await freePort();
  const echo = await startEcho(processes, { port });
  const subjects = running.map(({ subject }) => subject);
  subjects.push({ name: 'echo', origin: `http://127.0.0.1:${port}`, pids: [echo.pid], store: null });
  for (const subject of subjects)
    await slice({ subject }, scenario, WARM_SECONDS, { directory, isWarmUp: true });
  const slices = await inTurn(subjects, rounds, async (subject) => {
    const found = await slice({ subject }, scenario, duration, { directory });
    const fault = faultOf(found, scenario, subject.store !== null);
    if (fault !== null) throw new Error(`${subject.name} in ${scenario.name}: ${fault}`);
    return found;
  });
  await Promise.all([upstream, echo, ...running].map((one) => one.stop()));
  return Array.from({ length: rounds }, (_, i) => slices.map((one) => one[i]) as unknown as Trio);
}

function rowOf(name: string, trios: readonly Trio[]): readonly string[] {
  const cpu = (at: 0 | 1 | 2): number[] => trios.map((trio) => trio[at].cpuUs);
  const redis = (at: 0 | 1): number[] => trios.map((trio) => trio[at].storeCpuUs);
  const text = ({ p25, median, p75 }: Spread): string =>
    `${rounded(median, 3)} (${rounded(p25, 3)}-${rounded(p75, 3)})`;
  return [
    name,
    ...[pairedRatio(cpu(0), cpu(2)), pairedRatio(cpu(1), cpu(2)), pairedRatio(cpu(1), cpu(0))].map(text),
    text(pairedRatio(redis(1), redis(0))),
    `${rounded(Math.min(...cpu(0)), 1)} -> ${rounded(Math.min(...cpu(1)), 1)}`,
  ];
}

export const COMPARE = command({
  command: 'compare <old> <new>',
  describe: 'Compares the CPU time of two versions of the gateway, beside a plain server',
  builder: (program) =>
    program
      .positional('old', { type: 'string', demandOption: true, describe: 'A commit, or a folder such as .' })
      .positional('new', { type: 'string', demandOption: true, describe: 'Another one' })
      .options({
        only: names('only', NAMES, `Scenarios (usually ${USUAL.join(', ')})`),
        rounds: whole('rounds', 1, 1000, 10, 'Rounds, each of which visits every server once'),
        duration: whole('duration', 1, 600, 2, 'Seconds of one visit'),
      }),
  async run(bench, { old, new: other, only = USUAL, rounds, duration }) {
    const [before, after] = [checkOut(old), checkOut(other)];
    const report = new Report('compare', describeMachine(['gateway', 'policies.yaml']));
    const results = [];
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      // Whoever is second has a disadvantage of up to a tenth, and so has a process by chance: each comes first in half of
      // the rounds, with processes of its own.
      const half = (share: number) => ({ rounds: share, duration });
      const first = await compare(bench, [before, after], scenario, half(Math.ceil(rounds / 2)));
      const second = await compare(bench, [after, before], scenario, half(Math.floor(rounds / 2)));
      const trios = [...first, ...second.map(([one, two, echo]): Trio => [two, one, echo])];
      results.push({ scenario: scenario.name, trios });
      report.add({ title: scenario.title, head: HEAD, rows: [rowOf(scenario.name, trios)] });
    }
    report.write(results);
    return true;
  },
});
