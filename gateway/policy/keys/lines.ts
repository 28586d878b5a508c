/** Reads a file that a policy file names and that has one entry a line, such as a file of overrides. */
import { attempt, Mistake, type Path, type Report } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';

/** A file is parsed on the event loop, between requests of clients, so its size is limited. */
const USUAL_BYTES = 8_388_608;
const MISTAKES_MAX = 10;
const COMMENT = /[#;].*/;

interface LineFile {
  readonly name: string;
  /** Place in the policy file where it is named. */
  readonly at: Path;
  readonly bytesMax?: number;
  /** Whether lines with a mistake are skipped with a note, instead of reported. */
  readonly isLenient?: boolean;
}

export interface LinePlace {
  readonly referenced: ReferencedFiles;
  readonly report: Report;
}

/**
 * @param add called for every line that has more than a comment, without the comment. @throws Mistake
 * @returns the text; null if there are mistakes, which are reported
 */
export function readLines(
  { name, at, bytesMax = USUAL_BYTES, isLenient = false }: LineFile,
  { referenced, report }: LinePlace,
  add: (line: string) => void,
): string | null {
  const text = attempt(report, at, () => referenced.text(name, bytesMax));
  if (text === null) return null;
  let mistakes = 0;
  let first = '';
  let entries = 0;
  for (const [number, line] of linesOf(text)) {
    const bare = line.replace(COMMENT, '').trim();
    if (bare === '') continue;
    try {
      add(bare);
      entries++;
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      if (mistakes++ === 0) first = `line ${number}: ${error.what}`;
      if (isLenient) continue;
      report(at, `${name}:${number}: ${error.what}`, error.fix);
      if (mistakes === MISTAKES_MAX) break;
    }
  }
  referenced.sizes.set(name, entries);
  if (mistakes === 0) return text;
  if (!isLenient) return null;
  const what = mistakes === 1 ? `line of ${name} is` : `lines of ${name} are`;
  const fix = 'correct the list, or leave it as it is if the lines do not matter';
  referenced.notes.push([at, `${mistakes} ${what} skipped, such as ${first}`, fix]);
  return text;
}

/** Yields the lines with their numbers. A list of all of them would need the memory of a large file a second time. */
function* linesOf(text: string): Iterable<[number: number, line: string]> {
  let at = 0;
  for (let number = 1; at < text.length; number++) {
    const end = text.indexOf('\n', at);
    const line = text.slice(at, end < 0 ? text.length : end);
    at = end < 0 ? text.length : end + 1;
    yield [number, line];
  }
}
