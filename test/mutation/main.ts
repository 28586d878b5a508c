/**
 * `npm run mutation -- [--places N] [--from N] [--seed N] [--only TEXT]`: changes one operator or constant at a time, in
 * the rooms that must be exact, and tells what no test of `npm test` notices. The changes are made in a copy of the last
 * commit.
 *
 * Those test files run that import the changed file, until one fails: first those that are quick for what they are likely
 * to notice. All of them run once without a change before, for their times, and must be green. `--only` takes the places
 * whose line of the report has this text, `--from` leaves out those before.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, globSync, mkdtempSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, normalize, relative } from 'node:path';
import { parseArgs } from 'node:util';
import { projectRoot } from '#test/support/process.ts';
import { apply, type Place, placesOf } from './places.ts';

/** Files and folders below the project's. */
const ROOMS = [
  'gateway/algorithms/**/*.ts',
  'gateway/limiter/**/*.ts',
  'gateway/bans/scripts.ts',
  'gateway/request/reading/**/*.ts',
  'gateway/policy/*.ts',
  'gateway/policy/keys/**/*.ts',
  'gateway/listen/plain/**/*.ts',
  'gateway/proxy/reply-*.ts',
  'api/auth/**/*.ts',
];
/** These ask a whole gateway, and notice most. */
const BROAD = [
  'test/policies/policies.test.ts',
  'test/conversations/conversations.test.ts',
  'test/gateway/exchanges/exchanges.test.ts',
  'test/gateway/cli/sessions/sessions.test.ts',
];
/** Of the test files that import the changed file, so many of the nearest run. */
const FILES_MAX = 40;
/** A file beside the changed one, or a broad one, notices about so many times as often as another. */
const LIKELY = 8;
const LIMIT_MS = 600_000;
/** With a change, a file that takes so many times as long hangs. The machine may be busier than before. */
const LONGER = 8;
const LIMIT_MS_MIN = 30_000;

const { values } = parseArgs({
  options: {
    places: { type: 'string', default: '300' },
    seed: { type: 'string', default: '1' },
    only: { type: 'string' },
    from: { type: 'string', default: '1' },
    jobs: { type: 'string', default: '2' },
  },
});
const seed = Number(values.seed);
const files = globSync(ROOMS, { cwd: projectRoot }).sort();
const all = files
  .flatMap((file) => placesOf(file, readFileSync(join(projectRoot, file), 'utf8')))
  .filter((place) => values.only === undefined || textOf(place).includes(values.only));
const chosen = shuffle(all).slice(Number(values.from) - 1, Number(values.places));
console.log(`${chosen.length} of ${all.length} places in ${files.length} files, seed ${seed}`);

const tests = globSync('test/**/*.test.ts', {
  cwd: projectRoot,
  exclude: ['test/system/**', '**/node_modules/**'],
});
const distances = new Map(tests.map((test) => [test, distancesFrom(test)]));
/** Milliseconds that each green file takes without a change. */
const times = new Map<string, number>();
const compiled = mkdtempSync(join(tmpdir(), 'floodgate-mutation-compiled-'));
const survivors: Place[] = [];
let done = Number(values.from) - 1;
await inCopies([...new Set(chosen.flatMap(({ file }) => nearest(file)))], async (test, copy) => {
  const start = performance.now();
  if (await passes(test, copy)) times.set(test, performance.now() - start);
  else console.log(`not green without a change: ${test}`);
});
await inCopies(chosen, judge);
const noticed = chosen.length - survivors.length;
console.log(`noticed ${noticed} of ${chosen.length} (${((100 * noticed) / chosen.length).toFixed(1)} %)`);

function textOf({ file, line, old, new: changed }: Place): string {
  return `${file}:${line} "${old}" -> "${changed}"`;
}

/** Takes items until none is left, in as many copies of the last commit as there are jobs. */
async function inCopies<T>(
  items: readonly T[],
  take: (item: T, copy: string) => Promise<void>,
): Promise<void> {
  const waiting = [...items];
  const work = async (): Promise<void> => {
    const copy = mkdtempSync(join(tmpdir(), 'floodgate-mutation-'));
    execFileSync('git', ['worktree', 'add', '--detach', '--force', '--quiet', copy, 'HEAD'], {
      cwd: projectRoot,
    });
    symlinkSync(join(projectRoot, 'node_modules'), join(copy, 'node_modules'));
    try {
      for (let item = waiting.shift(); item !== undefined; item = waiting.shift()) await take(item, copy);
    } finally {
      execFileSync('git', ['worktree', 'remove', '--force', copy], { cwd: projectRoot });
    }
  };
  await Promise.all(Array.from({ length: Number(values.jobs) }, work));
}

async function judge(place: Place, copy: string): Promise<void> {
  const path = join(copy, place.file);
  const source = readFileSync(path, 'utf8');
  writeFileSync(path, apply(source, place));
  let by: string | undefined;
  for (const test of nearest(place.file)) {
    if (!times.has(test) || (await passes(test, copy))) continue;
    by = test;
    break;
  }
  writeFileSync(path, source);
  if (by === undefined) survivors.push(place);
  const end = by === undefined ? 'SURVIVED' : `noticed by ${by}`;
  console.log(`${++done} ${textOf(place)} ${end}`);
}

function nearest(file: string): string[] {
  const near = tests.flatMap((test) => {
    const distance = distances.get(test)?.get(file);
    return distance === undefined ? [] : [{ test, distance }];
  });
  const nearest = near.sort((a, b) => a.distance - b.distance).map(({ test }) => test);
  const beside = nearest.filter((test) => dirname(test).endsWith(dirname(file))).slice(0, FILES_MAX / 2);
  const likely = new Set([...beside, ...nearest.filter((test) => BROAD.includes(test))]);
  const costOf = (test: string): number => (times.get(test) ?? 0) / (likely.has(test) ? LIKELY : 1);
  const chosen = [...new Set([...likely, ...nearest])].slice(0, FILES_MAX);
  return chosen.sort((a, b) => costOf(a) - costOf(b));
}

/** Whether a test file is green. One that hangs is not. What it has started ends with it. */
function passes(test: string, cwd: string): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const child = spawn(process.execPath, [test], {
    ...{ cwd, stdio: 'ignore', detached: true },
    env: { ...process.env, TAP_TIMEOUT: '0', TAP_BAIL: '1', NODE_COMPILE_CACHE: compiled },
  });
  const end = (): void => {
    try {
      if (child.pid !== undefined) process.kill(-child.pid, 'SIGKILL');
    } catch {
      // Nothing of it runs any more.
    }
  };
  const usual = times.get(test);
  const limit = setTimeout(end, usual === undefined ? LIMIT_MS : Math.max(LIMIT_MS_MIN, LONGER * usual));
  child.on('exit', (code) => {
    clearTimeout(limit);
    end();
    resolve(code === 0);
  });
  return promise;
}

/** How many imports each file of the project is away from a test. */
function distancesFrom(test: string): Map<string, number> {
  const found = new Map([[test, 0]]);
  // A Map is read in the order of its entries, also those that are added meanwhile.
  for (const [file, distance] of found)
    for (const next of importsOf(file)) if (!found.has(next)) found.set(next, distance + 1);
  return found;
}

function importsOf(file: string): string[] {
  const source = readFileSync(join(projectRoot, file), 'utf8');
  return [
    ...source.matchAll(/^(?:import|export) (?!type )[^;]*?'([#.][^']+\.ts)'|import\('([#.][^']+\.ts)'\)/gm),
  ].flatMap(([, first, second]) => {
    const name = first ?? second ?? '';
    const path = name.startsWith('#') ? name.slice(1) : relative('.', normalize(join(dirname(file), name)));
    return existsSync(join(projectRoot, path)) ? [path] : [];
  });
}

/** Fisher and Yates with a small generator, so that a seed gives the same places again. */
function shuffle<T>(list: readonly T[]): T[] {
  const result = [...list];
  let state = seed;
  for (let i = result.length - 1; i > 0; i -= 1) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    const other = Math.floor((state / 2 ** 32) * (i + 1));
    const [a, b] = [result[i], result[other]];
    if (a === undefined || b === undefined) continue;
    result[i] = b;
    result[other] = a;
  }
  return result;
}
