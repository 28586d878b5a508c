/**
 * `npm run bench -- abuse`: attacks a server from one address, while a well-behaved visitor uses it. The load is
 * limited to 600 sockets, 1,500 requests a second, a few seconds for each attack, and loopback.
 */
import { SCENARIOS } from '#bench/abuse/scenarios.ts';
import { TARGETS } from '#bench/abuse/targets.ts';
import { GOALS_TEXT, judge, tableOf } from '#bench/abuse/verdict.ts';
import { type AbuseResult, runOn, type VisitPlan } from '#bench/abuse/visit.ts';
import { command, names, settings } from '#bench/command.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { Report } from '#bench/run/report.ts';

const NAMES = SCENARIOS.map(({ name }) => name);
const PEERS = TARGETS.map(({ name }) => name);
const LONG: VisitPlan = { aloneSeconds: 2.5, attackSeconds: 5, replyMsMax: 3000 };
const QUICK: VisitPlan = { ...LONG, aloneSeconds: 2, attackSeconds: 2.5 };

export const ABUSE = command({
  command: 'abuse',
  describe: 'Attacks the gateway and its peers from one address, while a well-behaved visitor uses them',
  builder: (program) =>
    program.options({
      only: names('only', NAMES, 'Attacks'),
      peers: names('peers', PEERS, 'Peers to compare with Floodgate'),
      set: settings('Floodgate'),
      quick: { type: 'boolean', default: false, describe: '2.5 seconds for each attack instead of 5' },
    }),
  async run(processes, { only = NAMES, peers = PEERS, quick, set }) {
    const targets = TARGETS.filter(({ name }) => name === 'floodgate' || peers.includes(name));
    const plan = { ...(quick ? QUICK : LONG), settings: set };
    const report = new Report('abuse');
    const reached = new Map<string, boolean[]>();
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      const results: AbuseResult[] = [];
      const leftOut: string[] = [];
      for (const target of targets) {
        if (scenario.isForFloodgateOnly === true && target.name !== 'floodgate') continue;
        try {
          assertInstalled([target.needs]);
          const result = await runOn(target, scenario, plan, processes);
          const isReached = judge(scenario, result).every((goal) => goal.isReached);
          results.push(result);
          reached.set(target.name, [...(reached.get(target.name) ?? []), isReached]);
        } catch (error) {
          // A failed visit must not end the whole run, which takes twenty minutes.
          leftOut.push(`left out: ${target.name}: ${(error as Error).message}`);
        }
      }
      report.add(tableOf(scenario, results, leftOut), results);
    }
    const rows = [...reached].map(([name, all]) => [
      name,
      String(all.filter(Boolean).length),
      String(all.length),
    ]);
    report.add({ title: 'All goals', head: ['', 'reached', 'of'], rows, notes: [GOALS_TEXT] });
    return true;
  },
});
