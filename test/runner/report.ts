/** What people read of a run: its results, and the failures of a TAP text. */

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
