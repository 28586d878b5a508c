/** `npm run bench -- ladder`: what each step of a request costs. */
import { command, names, whole } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { ladderOf, rungsOf } from '#bench/ladder/rungs.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';

const NAMES = ['denied', 'hot', 'quiet'];

export const LADDER = command({
  command: 'ladder',
  describe: 'Measures what each step of a request adds to a bare server',
  builder: (program) =>
    program.options({
      only: names('only', NAMES, 'Scenarios'),
      rounds: whole('rounds', 1, 1000, 15, 'Rounds, each of which visits every step once'),
      duration: whole('duration', 1, 600, 1, 'Seconds of one visit'),
    }),
  async run(processes, { only = NAMES, rounds, duration }) {
    assertInstalled(['wrk', 'redis-server', 'nginx']);
    printMachine();
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      const measured = new Map<string, Measured>();
      const rungs = rungsOf(scenario);
      const plan = { rounds: Math.ceil(rounds / 2), seconds: duration };
      // By chance, one start of a process may cost up to a tenth more than another. So each rung is started twice.
      for (const order of [rungs, rungs.toReversed()])
        await measureScenario(processes, scenario, order, plan, measured);
      printTable(ladderOf(scenario, measured));
    }
    return true;
  },
});
