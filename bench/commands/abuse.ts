/**
 * `npm run bench -- abuse`: attacks the gateway from one address, while a well-behaved visitor uses it. The load is
 * limited to 600 sockets, 1,500 requests a second, a few seconds for each attack, and loopback.
 */
import { SCENARIOS } from '#bench/abuse/scenarios.ts';
import { GOALS_TEXT, judge, tableOf } from '#bench/abuse/verdict.ts';
import { runScenario, type VisitPlan } from '#bench/abuse/visit.ts';
import { command, names } from '#bench/command.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';

const NAMES = SCENARIOS.map(({ name }) => name);
const LONG: VisitPlan = { aloneSeconds: 2.5, attackSeconds: 5, replyMsMax: 3000 };
const QUICK: VisitPlan = { ...LONG, aloneSeconds: 2, attackSeconds: 2.5 };

export const ABUSE = command({
  describe: 'Attacks the gateway from one address, while a well-behaved visitor uses it',
  options: {
    only: names(NAMES, 'Attacks'),
    quick: { isFlag: true, describe: '2.5 seconds for each attack instead of 5' },
  },
  async run({ only = NAMES, quick }, processes) {
    assertInstalled(['redis-server']);
    printMachine();
    let reached = 0;
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      try {
        if (scenario.run !== undefined) {
          const table = await scenario.run(processes);
          if (table.isReached) reached++;
          printTable(table);
          continue;
        }
        const result = await runScenario(scenario, quick ? QUICK : LONG, processes);
        if (judge(scenario, result).every((goal) => goal.isReached)) reached++;
        printTable(tableOf(scenario, result));
      } catch (error) {
        // A failed visit must not end the whole run, which takes twenty minutes.
        printTable({ title: `${scenario.name} failed: ${(error as Error).message}`, head: [], rows: [] });
      }
    }
    printTable({
      title: `${reached} of ${only.length} attacks reached all goals`,
      head: [],
      rows: [],
      notes: [GOALS_TEXT],
    });
    return true;
  },
});
