/**
 * `npm run soak:api -- [--minutes N] [--seed N]`: hostile requests to every documented route of the API, four at once.
 * Prints replies by status, stalls of the event loop and what an hour would add to the memory. Ends with 1 after a reply
 * of 500, one that is not as described, or 100 ms of computing without a turn of the loop.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { watchMemory } from '../soak/memory.ts';
import { startHostileApi } from './api.ts';
import { soak } from './soak.ts';
import type { Vitals } from './watch.ts';

const USAGE = `npm run soak:api -- [--minutes N] [--seed N]

  --minutes N   from 0.1 to 1440 (default 10)
  --seed N      of the requests (default: another one each time; the report names it)
`;
const BUSY_MAX_MS = 100;

function optionsOf(argv: readonly string[]): { readonly minutes: number; readonly seed: number } {
  const { values } = parseArgs({
    args: [...argv],
    options: { minutes: { type: 'string', default: '10' }, seed: { type: 'string' } },
  });
  const minutes = Number(values.minutes);
  const seed = values.seed === undefined ? Math.floor(Math.random() * 2 ** 31) : Number(values.seed);
  if (!(minutes >= 0.1 && minutes <= 1440))
    throw new TypeError(`--minutes is "${values.minutes}"; give 0.1 to 1440`);
  if (!Number.isInteger(seed)) throw new TypeError(`--seed is "${values.seed}"; give a whole number`);
  return { minutes, seed };
}

function worst(vitals: readonly Vitals[]): Vitals | null {
  return vitals.reduce<Vitals | null>((a, b) => (a === null || b.busyMs > a.busyMs ? b : a), null);
}

async function main(): Promise<void> {
  const { minutes, seed } = optionsOf(process.argv.slice(2));
  const folder = mkdtempSync(join(tmpdir(), 'floodgate-soak-'));
  process.once('exit', () => rmSync(folder, { recursive: true, force: true }));
  let vitals: Vitals[] = [];
  const api = await startHostileApi(folder, (one) => void vitals.push(one));
  vitals.length = 0;
  const endMemory = watchMemory(api.pid);
  const { faultCount, faults, operations, replies } = await soak({
    ...{ origin: api.origin, seconds: minutes * 60, seed },
  });
  const memory = endMemory();
  const ending = api.ending();
  await api.stop();
  // The start computes for a second or so, and nobody is waiting yet; the first report has the end of it.
  vitals = vitals.slice(1);
  const stall = worst(vitals);
  const stalls = vitals.filter(({ busyMs }) => busyMs > BUSY_MAX_MS);
  const byStatus = [...replies].sort(([a], [b]) => a - b).map(([status, count]) => `${count} × ${status}`);
  process.stdout.write(
    `${[
      `seed        ${seed}, ${minutes} minutes, ${operations} operations`,
      `replies     ${byStatus.join(', ')}`,
      `faults      ${faultCount}${ending === null ? '' : `; the API ended ${ending}`}`,
      `event loop  longest stall ${Math.max(...vitals.map(({ stallMs }) => stallMs)).toFixed(0)} ms, of computing ${stall?.busyMs.toFixed(0)} ms; more than ${BUSY_MAX_MS} ms in ${stalls.length} of ${vitals.length} seconds`,
      `memory      ${memory.endMb.toFixed(0)} MB at the end, peak ${memory.peakMb.toFixed(0)} MB, slope of the second half ${memory.slopeMbPerHour.toFixed(0)} MB/hour`,
      ...stalls.map(
        (one) =>
          `  ${one.busyMs.toFixed(0)} ms in second ${vitals.indexOf(one) + 1}, the garbage collector ${one.gcMs.toFixed(0)} of them, heap ${(one.heapBytes / 1_048_576).toFixed(0)} MB: ${one.during.join(' | ')}`,
      ),
      ...faults.map((one) => `  ${one}`),
    ].join('\n')}\n`,
  );
  if (faultCount > 0 || stalls.length > 0 || ending !== null) process.exitCode = 1;
}

try {
  await main();
} catch (error) {
  const isUsage = error instanceof TypeError;
  process.stderr.write(isUsage ? `${error.message}\n${USAGE}` : `${(error as Error).stack}\n`);
  process.exitCode = 1;
}
