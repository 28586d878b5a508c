/** `npm run bench -- ladder`: what each step of a denied request costs. */
import { command } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { DENIED } from '#bench/costs/scenarios.ts';
import { ladderOf, RUNGS } from '#bench/ladder/rungs.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';
import { whole } from '#shared/cli/command.ts';

export const LADDER = command({
  describe: 'Measures what each step of a denied request adds to a bare server',
  options: {
    rounds: {
      parse: whole(1, 1000),
      default: '15',
      describe: 'Rounds, each of which visits every step once',
    },
    duration: { parse: whole(1, 600), default: '1', describe: 'Seconds of one visit' },
  },
  async run({ rounds, duration }, processes) {
    assertInstalled(['wrk', 'redis-server', 'nginx']);
    printMachine();
    const measured = new Map<string, Measured>();
    const plan = { rounds: Math.ceil(rounds / 2), seconds: duration };
    // By chance, one start of a process may cost up to a tenth more than another. So each rung is started twice.
    for (const order of [RUNGS, RUNGS.toReversed()])
      await measureScenario(processes, DENIED, order, plan, measured);
    printTable(ladderOf(DENIED, measured));
    return true;
  },
});
