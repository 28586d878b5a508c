/** Reads a file that a policy file names and that has one entry a line, such as a file of overrides. */
import { Mistake, type Path, type Report, reportMistake } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';

/** A file is parsed on the event loop, between requests of clients, so its size is limited. */
const USUAL = { lines: 100_000, bytes: 8_388_608 } as const;
const MISTAKES_MAX = 10;

interface LineOptions {
  readonly max?: { readonly lines: number; readonly bytes: number };
  /** Called for every line with a mistake, instead of reporting it; null to report it. */
  readonly skip?: ((number: number, what: string) => void) | null;
}

/**
 * @param here place in the policy file where it is named
 * @param add called for every line that is neither blank nor a comment. @throws Mistake
 * @returns the text; null if there are mistakes, which are reported
 */
export function addLines(
  name: string,
  here: Path,
  referenced: ReferencedFiles,
  report: Report,
  add: (line: string) => void,
  { max = USUAL, skip = null }: LineOptions = {},
): string | null {
  let text: string;
  try {
    text = referenced.text(name, max.bytes);
  } catch (error) {
    reportMistake(report, here, error);
    return null;
  }
  const lines = countNewlines(text);
  if (lines > max.lines) {
    report(
      here,
      `${name} has ${lines} lines`,
      `write at most ${max.lines}, and the others by network or plan`,
    );
    return null;
  }
  let mistakes = 0;
  let entries = 0;
  let at = 0;
  for (let number = 1; at < text.length; number++) {
    // A list of all lines would need the memory of a large file a second time.
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    at = end < 0 ? text.length : end + 1;
    const bare = line.trim();
    if (bare === '' || /^[#;]/.test(bare)) continue;
    try {
      add(line);
      entries++;
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      if (skip !== null) {
        skip(number, error.what);
        continue;
      }
      report(here, `${name}:${number}: ${error.what}`, error.fix);
      if (++mistakes === MISTAKES_MAX) break;
    }
  }
  referenced.listSizes.set(name, entries);
  return mistakes > 0 ? null : text;
}

function countNewlines(text: string): number {
  let count = 0;
  for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', at + 1)) count++;
  return count;
}
