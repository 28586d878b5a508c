/** `npm run bench -- abuse`: attacks the gateway, and judges how a visitor fares meanwhile. */
import { SCENARIOS } from '#bench/abuse/scenarios.ts';
import { runSwarm, SWARM } from '#bench/abuse/swarm.ts';
import { GOALS_TEXT, tableOf } from '#bench/abuse/verdict.ts';
import { runScenario } from '#bench/abuse/visit.ts';
import { command, names } from '#bench/command.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';

const NAMES = SCENARIOS.map(({ name }) => name);
const PLAN = { aloneSeconds: 2, attackSeconds: 2.5, replyMsMax: 3000 };
/** The limit of newcomers admits one in seven of the swarm. */
const SWARM_PLAN = {
  ...{ seconds: 60, windowMs: 10_000, limit: 1000, regulars: 200, honest: 50, replyMsMax: 5000 },
};

export const ABUSE = command({
  describe: 'Attacks the gateway from one address, while a well-behaved visitor uses it',
  options: { only: names(NAMES, 'Attacks') },
  async run({ only = NAMES }) {
    assertInstalled(['redis-server']);
    printMachine();
    let reached = 0;
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      try {
        const table =
          scenario === SWARM
            ? await runSwarm(SWARM_PLAN)
            : tableOf(scenario, await runScenario(scenario, PLAN));
        if (table.isReached) reached++;
        printTable(table);
      } catch (error) {
        // A failed visit must not end the whole run.
        printTable({ title: `${scenario.name} failed: ${(error as Error).message}`, head: [], rows: [] });
      }
    }
    const title = `${reached} of ${only.length} attacks reached all goals`;
    printTable({ title, head: [], rows: [], notes: [GOALS_TEXT] });
    return true;
  },
});
