/** `npm run bench -- abuse`: attacks the gateway, and judges how a visitor fares meanwhile. */
import { ATTACKS, attackOf } from '#bench/abuse/attacks.ts';
import { runAttack } from '#bench/abuse/run.ts';
import { GOALS_TEXT, missed, tableOf } from '#bench/abuse/verdict.ts';
import { command, names } from '#bench/command.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { printMachine, printTable } from '#bench/run/report.ts';

const NAMES = [...ATTACKS.keys()];
const PLAN = { aloneSeconds: 2, attackSeconds: 2.5, replyMsMax: 3000 };

export const ABUSE = command({
  describe: 'Attacks the gateway from one address, while a well-behaved visitor uses it',
  options: { only: names(NAMES, 'Attacks') },
  async run({ only = NAMES }) {
    assertInstalled(['redis-server']);
    printMachine();
    let reached = 0;
    for (const name of only) {
      const { seconds: attackSeconds = PLAN.attackSeconds } = attackOf(name);
      try {
        const result = await runAttack(name, { ...PLAN, attackSeconds });
        if (Object.keys(missed(name, result)).length === 0) reached++;
        printTable(tableOf(name, result));
      } catch (error) {
        // A failed attack must not end the whole run.
        printTable({ title: `${name} failed: ${(error as Error).message}`, head: [], rows: [] });
      }
    }
    const title = `${reached} of ${only.length} attacks reached all goals`;
    printTable({ title, head: [], rows: [], notes: [GOALS_TEXT] });
    return true;
  },
});
