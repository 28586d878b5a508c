/**
 * `npm run bench`: compares the cost of a request with Floodgate, with other programs, and with other versions of it.
 */
import { command, names } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { publish } from '#bench/costs/publish.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { tableOf } from '#bench/costs/table.ts';
import { PEERS } from '#bench/peers/all.ts';
import type { Peer } from '#bench/peers/peer.ts';
import { versionAt } from '#bench/peers/version.ts';
import { assertInstalled } from '#bench/run/programs.ts';
import { machine, printMachine, printTable } from '#bench/run/report.ts';
import { whole } from '#shared/cli/command.ts';

const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);
const PEER_NAMES = PEERS.map(({ name }) => name);
const USUAL = ['hot', 'keys-20k', 'denied', 'post-1k', 'uncovered'];

export const PEERS_COMMAND = command({
  describe: 'Compares what a request costs with Floodgate and with its peers',
  options: {
    only: names(SCENARIO_NAMES, `Scenarios (default: all; with --against ${USUAL.join(',')})`),
    peers: names(PEER_NAMES, 'Peers to compare with Floodgate (default: all; with --against none)'),
    against: { describe: 'Another version of Floodgate: a commit, or a folder' },
    rounds: { parse: whole(1, 1000), default: '7', describe: 'Rounds, each of which visits every peer once' },
    duration: { parse: whole(1, 600), default: '3', describe: 'Seconds of one visit' },
    publish: { isFlag: true, describe: 'Writes the tables in README.md and docs/performance.md' },
  },
  async run({ against, rounds, duration: seconds, ...args }) {
    const begun = { date: new Date().toISOString(), machine: machine(), rounds, seconds };
    const scenarios: Record<string, Record<string, Measured>> = {};
    let isWhole = true;
    assertInstalled(['wrk', 'redis-server', 'nginx']);
    const only = args.only ?? (against === undefined ? SCENARIO_NAMES : USUAL);
    const peers = args.peers ?? (against === undefined ? PEER_NAMES : []);
    const versions = against === undefined ? [] : [versionAt(against)];
    printMachine();
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      const isWanted = ({ name }: Peer): boolean =>
        name === 'floodgate' || (scenario.peers.includes(name) && peers.includes(name));
      const all = [...PEERS.filter(isWanted), ...versions];
      // By chance, one start of a process may cost up to a tenth more CPU time than another. The order of the starts
      // also matters. So two versions are started twice, in both orders.
      const orders = against === undefined ? [all] : [all, all.toReversed()];
      const measured = new Map<string, Measured>();
      const plan = { rounds: Math.ceil(rounds / orders.length), seconds };
      for (const order of orders) await measureScenario(scenario, order, plan, measured);
      printTable(tableOf(scenario, measured));
      scenarios[scenario.name] = Object.fromEntries(measured);
      isWhole &&= measured.values().every(({ failure }) => failure === undefined);
      // A later scenario may end the run.
      if (args.publish) publish({ ...begun, scenarios });
    }
    return isWhole || !args.publish;
  },
});
