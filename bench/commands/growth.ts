/** `npm run bench -- growth`: measures how the cost of a request and the memory grow with what an operator adds. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { command, names } from '#bench/command.ts';
import { type Measured, measureScenario } from '#bench/costs/measure.ts';
import { tableOf } from '#bench/costs/table.ts';
import type { Growth } from '#bench/growth/chart.ts';
import { DIMENSIONS, HOT } from '#bench/growth/dimensions.ts';
import { filesOf, PAGE, pointsOf } from '#bench/growth/results.ts';
import { assertInstalled, ROOT } from '#bench/run/programs.ts';
import { machine, printMachine, printTable } from '#bench/run/report.ts';
import { whole } from '#shared/cli/command.ts';

const NAMES = DIMENSIONS.map(({ name }) => name);

export const GROWTH = command({
  describe: 'Measures how cost and memory grow with policies, keys, connections and so on',
  options: {
    only: names(NAMES, 'What grows (default: all)'),
    rounds: {
      parse: whole(1, 1000),
      default: '5',
      describe: 'Rounds, each of which visits every point once',
    },
    duration: { parse: whole(1, 600), default: '2', describe: 'Seconds of one visit' },
    publish: { isFlag: true, describe: 'Write the charts, and show them in docs/performance.md' },
  },
  async run({ only = NAMES, rounds, duration: seconds, publish }) {
    assertInstalled(['wrk', 'redis-server', 'nginx']);
    printMachine();
    const growths: Growth[] = [];
    for (const { name, title, peers } of DIMENSIONS.filter((one) => only.includes(one.name))) {
      const measured = new Map<string, Measured>();
      await measureScenario(HOT, peers, { rounds, seconds }, measured);
      printTable(tableOf({ ...HOT, name, title: `by ${title}` }, measured));
      if (measured.values().every(({ failure }) => failure === undefined))
        growths.push({ name, title, points: pointsOf(measured) });
    }
    const results = { date: new Date().toISOString().slice(0, 10), machine: machine(), rounds, growths };
    if (publish)
      for (const [file, text] of filesOf(results, readFileSync(join(ROOT, PAGE), 'utf8')))
        writeFileSync(join(ROOT, file), text);
    return growths.length === only.length;
  },
});
