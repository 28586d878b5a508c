/** `npm run bench -- ladder`: what each step of a request costs. */
import { command, names } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { ladderOf, rungsOf } from '#bench/ladder/rungs.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';
import { whole } from '#shared/cli/command.ts';

const NAMES = ['denied', 'hot', 'quiet'];

export const LADDER = command({
  describe: 'Measures what each step of a request adds to a bare server',
  options: {
    only: names(NAMES, 'Scenarios'),
    rounds: {
      parse: whole(1, 1000),
      default: '15',
      describe: 'Rounds, each of which visits every step once',
    },
    duration: { parse: whole(1, 600), default: '1', describe: 'Seconds of one visit' },
  },
  async run({ only = NAMES, rounds, duration }, processes) {
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
