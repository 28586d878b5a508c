/** Summaries of a run for people: the failures of a TAP text, and the files that took most CPU time. */

const NOT_OK = /^( *)not ok \d+ - /;
/** Maximum number of lines of one failure. A longer stack or difference is cut. */
const MOST_LINES = 25;
/** Maximum number of failures. After a bad change the first ones are enough. */
const MOST_FAILURES = 60;

/** Returns the line of each file, without its subtests. */
export function resultsOf(tap: string): string {
  return tap.replaceAll(/^(?!(?:not )?ok ).*(?:\n|$)/gm, '');
}

/** Returns each `not ok` line with its details, inner ones before their subtest. */
export function failures(tap: string): string[] {
  const lines = tap.split('\n');
  const found: string[] = [];
  let count = 0;
  for (const [index, line] of lines.entries()) {
    const indent = NOT_OK.exec(line)?.[1];
    if (indent === undefined) continue;
    count += 1;
    if (count <= MOST_FAILURES) found.push(line, ...details(lines, index + 1, `${indent}  `));
  }
  if (count > MOST_FAILURES) found.push(`and ${count - MOST_FAILURES} more`);
  return found;
}

/** Returns the YAML block that may follow a result, without its frame. */
function details(lines: readonly string[], from: number, indent: string): string[] {
  if (lines[from] !== `${indent}---`) return [];
  const end = lines.indexOf(`${indent}...`, from);
  const block = lines.slice(from + 1, end === -1 ? from + MOST_LINES : end);
  return block.length > MOST_LINES ? [...block.slice(0, MOST_LINES), `${indent}(cut)`] : block;
}

/** Milliseconds of processor time. */
export interface Used {
  readonly name: string;
  readonly own: number;
  /** Resources used by the processes that it started. */
  readonly started: number;
}

const SHOWN = 30;

/** Returns a table of the files that took most. */
export function slowest(used: readonly Used[]): string[] {
  const all = new Map<string, Used>();
  for (const { name, own, started } of used) {
    const known = all.get(name) ?? { own: 0, started: 0 };
    all.set(name, { name, own: known.own + own, started: known.started + started });
  }
  const rows = [...all.values()].sort((a, b) => b.own + b.started - (a.own + a.started));
  return [
    'seconds of processor time: own, of started processes',
    row('all', rows),
    ...rows.slice(0, SHOWN).map((one) => row(one.name, [one])),
  ];
}

function row(name: string, used: readonly Used[]): string {
  const seconds = (times: readonly number[]): string =>
    (times.reduce((sum, time) => sum + time, 0) / 1000).toFixed(1).padStart(8);
  return `${seconds(used.map(({ own }) => own))} ${seconds(used.map(({ started }) => started))} ${name}`;
}
