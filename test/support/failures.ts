/** Short forms of a TAP text, for people. */

const NOT_OK = /^( *)not ok \d+ - /;
/** Each of a failure. A stack or a difference that is longer is cut. */
const MOST_LINES = 25;
/** Of all failures together: after a bad change, the first ones say enough. */
const MOST_FAILURES = 60;

/** The line of each file, without its subtests. */
export function resultsOf(tap: string): string {
  return tap.replaceAll(/^(?!(?:not )?ok ).*(?:\n|$)/gm, '');
}

/** Each `not ok` line with its details, inner ones before the subtest that they belong to. */
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

/** The YAML block that may follow a result, without its frame. */
function details(lines: readonly string[], from: number, indent: string): string[] {
  if (lines[from] !== `${indent}---`) return [];
  const end = lines.indexOf(`${indent}...`, from);
  const block = lines.slice(from + 1, end === -1 ? from + MOST_LINES : end);
  return block.length > MOST_LINES ? [...block.slice(0, MOST_LINES), `${indent}(cut)`] : block;
}
