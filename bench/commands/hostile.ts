/** `npm run bench -- hostile`: sends hostile requests to all documented operations of the survey API, four at once. */
import { command, number } from '#bench/command.ts';
import { soak, startHostileApi } from '#bench/hostile/soak.ts';
import type { Vitals } from '#bench/hostile/watch.ts';
import { watchMemory } from '#bench/run/memory.ts';
import { Report, rounded } from '#bench/run/report.ts';

const BUSY_MAX_MS = 100;
const SEED_MAX = 2 ** 31 - 1;

function stallText({ busyMs, gcMs, heapBytes, during }: Vitals, second: number): string {
  return (
    `  ${rounded(busyMs, 0)} ms in second ${second}, garbage collector ${rounded(gcMs, 0)} ms, ` +
    `heap ${rounded(heapBytes / 2 ** 20, 0)} MB: ${during.join(' | ')}`
  );
}

export const HOSTILE = command({
  command: 'hostile',
  describe: 'Sends hostile requests to the survey API; exits with 1 after a wrong reply or a stall',
  builder: (program) =>
    program.options({
      minutes: number('minutes', { min: 0.1, max: 1440, initial: 10, describe: 'Duration in minutes' }),
      seed: number('seed', {
        ...{ min: 0, max: SEED_MAX, initial: Math.floor(Math.random() * SEED_MAX), isWhole: true },
        describe: 'The same seed gives the same requests',
      }),
    }),
  async run(processes, { minutes, seed }) {
    const report = new Report('hostile');
    const vitals: Vitals[] = [];
    const api = await startHostileApi(processes, (one) => void vitals.push(one));
    // Ignore the reports of the start, in which the API computes for a second. The first report below still has its
    // end.
    vitals.length = 0;
    const endMemory = watchMemory(api.pid);
    const { tally, operations } = await soak({ origin: api.origin, seconds: minutes * 60, seed });
    const memory = endMemory();
    const ending = api.ending();
    await api.stop();
    const seconds = vitals.slice(1);
    const stalls = seconds.filter(({ busyMs }) => busyMs > BUSY_MAX_MS);
    const longest = rounded(Math.max(...seconds.map(({ busyMs }) => busyMs)), 0);
    report.add({
      title: `Seed ${seed}, ${minutes} minutes, ${operations} operations`,
      head: [],
      rows: [
        ['replies', tally.kindsText()],
        ['faults', `${tally.wrongReplies}${ending === null ? '' : `; the API ended: ${ending}`}`],
        ['longest tick', `${longest} ms of computing`],
        ['stalls', `more than ${BUSY_MAX_MS} ms in ${stalls.length} of ${seconds.length} seconds`],
        ...memory,
      ],
      notes: [...stalls.map((one) => stallText(one, seconds.indexOf(one) + 1)), ...tally.wrongLines()],
    });
    return tally.wrongReplies === 0 && stalls.length === 0 && ending === null;
  },
});
