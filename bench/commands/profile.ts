/** `npm run bench -- profile SCENARIO`: reports the CPU time of the gateway by file and by function. */
import { mkdirSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command, whole } from '#bench/command.ts';
import { measureScenario } from '#bench/costs/measure.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { variant } from '#bench/peers/floodgate.ts';
import { BENCH } from '#bench/run/programs.ts';

const LINES = 45;

/** The format of Node's CPU profiles. */
interface Profile {
  readonly nodes: readonly {
    readonly id: number;
    readonly callFrame: { readonly functionName: string; readonly url: string; readonly lineNumber: number };
  }[];
  readonly samples: readonly number[];
  readonly timeDeltas: readonly number[];
}

/** @returns lines with the share of each file and each function in the CPU time */
function linesOf({ nodes, samples, timeDeltas }: Profile): readonly string[] {
  const frames = new Map(nodes.map(({ id, callFrame }) => [id, callFrame]));
  const functions = new Map<string, number>();
  const files = new Map<string, number>();
  const add = (table: Map<string, number>, name: string, us: number): void =>
    void table.set(name, (table.get(name) ?? 0) + us);
  let busyUs = 0;
  for (const [i, id] of samples.entries()) {
    const frame = frames.get(id);
    const us = timeDeltas[i] ?? 0;
    if (frame === undefined || frame.functionName === '(idle)') continue;
    busyUs += us;
    const file = frame.url.replace(/^file:\/\/.*?\/(gateway|node_modules)\//, '$1/');
    add(functions, `${frame.functionName || '(anonymous)'} ${file}:${frame.lineNumber + 1}`, us);
    // One line for each package, each file of the gateway, and each module of Node.
    const dependency = /^node_modules\/(?:@[^/]+\/)?[^/]+/.exec(file)?.[0];
    add(files, dependency ?? (/^(gateway\/|node:)/.test(file) ? file : frame.functionName), us);
  }
  return [files, functions].flatMap((table) => [
    ...[...table]
      .sort(([, a], [, b]) => b - a)
      .slice(0, LINES)
      .map(([name, us]) => `${((100 * us) / busyUs).toFixed(1).padStart(6)} %  ${name}`),
    '',
  ]);
}

export const PROFILE = command({
  command: 'profile <scenario>',
  describe: 'Reports where the CPU time of the gateway goes',
  builder: (program) =>
    program
      .positional('scenario', {
        choices: SCENARIOS.map(({ name }) => name),
        demandOption: true,
        describe: 'Scenario whose load is sent',
      })
      .options({ duration: whole('duration', 1, 600, 6, 'Seconds of load') }),
  async run(processes, { scenario: name, duration }) {
    const scenario = SCENARIOS.find((one) => one.name === name);
    if (scenario === undefined) throw new Error(`there is no scenario ${name}`);
    const folder = join(BENCH, 'results', `profile-${name}-${process.pid}`);
    mkdirSync(folder, { recursive: true });
    const nodeFlags = ['--cpu-prof', `--cpu-prof-dir=${folder}`, '--cpu-prof-interval=500'];
    const peer = variant('floodgate', 'Floodgate', () => ({ nodeFlags }));
    const measured = await measureScenario(processes, scenario, [peer], { rounds: 1, duration });
    const { slices = [], failure } = measured.get(peer.name) ?? {};
    if (failure !== undefined) throw new Error(failure);
    const file = join(folder, readdirSync(folder)[0] ?? '');
    const lines = linesOf(JSON.parse(readFileSync(file, 'utf8')));
    process.stdout.write(
      `${slices[0]?.perSecond.toFixed(0)} requests a second while profiling\n\n${lines.join('\n')}\n${file}\n`,
    );
    return true;
  },
});
