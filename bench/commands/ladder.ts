/** `npm run bench -- ladder`: what each step of a request costs, beside a bare server that takes none of them. */
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { command, names } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { SCENARIOS } from '#bench/costs/scenarios.ts';
import { type Profile, STEPS, sharesOf } from '#bench/ladder/profile.ts';
import { FLOODGATE } from '#bench/peers/floodgate.ts';
import type { Peer } from '#bench/peers/peer.ts';
import { BENCH } from '#bench/run/programs.ts';
import { printMachine, printTable, rounded } from '#bench/run/report.ts';
import { spread } from '#bench/run/statistics.ts';
import { whole } from '#shared/cli/command.ts';

const SCENARIO_NAMES = SCENARIOS.map(({ name }) => name);

const BARE: Peer = {
  ...{ name: 'bare', label: 'bare', needs: [] },
  start({ processes, port, limit, env = {} }) {
    const program = join(BENCH, 'ladder', 'bare-server.ts');
    return processes.node([program, String(port), String(limit)], port, { env });
  },
};

export const LADDER = command({
  describe: 'Measures what each step of a request costs',
  options: {
    only: names(SCENARIO_NAMES, 'Scenarios (default: denied)'),
    rounds: { parse: whole(1, 1000), default: '10', describe: 'Number of visits to each server' },
    duration: { parse: whole(1, 600), default: '1', describe: 'Seconds of one visit' },
  },
  async run({ only = ['denied'], rounds, duration: seconds }) {
    printMachine();
    for (const scenario of SCENARIOS.filter(({ name }) => only.includes(name))) {
      const measured = new Map<string, Measured>();
      const shares = new Map<string, ReadonlyMap<string, number>>();
      const peers = [BARE, FLOODGATE].map((peer) => profiled(peer, shares));
      await measureScenario(scenario, peers, { rounds, seconds }, measured);
      const columns = peers.map(({ name }) => {
        const { slices = [], failure } = measured.get(name) ?? {};
        if (failure !== undefined) throw new Error(`${name} was not measured: ${failure}`);
        const { median } = spread(slices.map(({ cpuUs }) => cpuUs));
        const of = shares.get(name);
        return ['', ...STEPS].map((step) => rounded(median * (step === '' ? 1 : (of?.get(step) ?? 0)), 1));
      });
      const rows = ['all', ...STEPS].map((step, i) => [step, ...columns.map((column) => column[i] ?? '')]);
      const head = ['', ...peers.map(({ label }) => label)];
      printTable({ title: `${scenario.title}, CPU µs`, head, rows });
    }
    return true;
  },
});

/** Makes a peer whose process writes a profile when it ends. @param shares gets what it says, by name of the peer */
function profiled(peer: Peer, shares: Map<string, ReadonlyMap<string, number>>): Peer {
  return {
    ...peer,
    async start(launch) {
      const { processes } = launch;
      const folder = join(processes.folder, peer.name);
      const env = { NODE_OPTIONS: `--cpu-prof --cpu-prof-dir=${folder}` };
      const started = await peer.start({ ...launch, env });
      processes.teardown(async () => {
        await started.stop();
        const [file = ''] = readdirSync(folder);
        const profile: Profile = JSON.parse(readFileSync(join(folder, file), 'utf8'));
        shares.set(peer.name, sharesOf(profile));
      });
      return started;
    },
  };
}
