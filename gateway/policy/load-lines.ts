/** Reads a file that a policy file names and that has one entry a line, such as a file of overrides. */
import { Mistake, type Path, type Report, reportMistake } from './problems.ts';
import type { ReferencedFiles } from './referenced-files.ts';

/** A file is parsed on the event loop, between requests of clients, so its size is limited. */
const LINES_MAX = 100_000;
const BYTES_MAX = 8_388_608;
const MISTAKES_MAX = 10;

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
): string | null {
  let text: string;
  try {
    text = referenced.text(name, BYTES_MAX);
  } catch (error) {
    reportMistake(report, here, error);
    return null;
  }
  const lines = text.split('\n');
  if (lines.length > LINES_MAX + 1) {
    report(
      here,
      `${name} has ${lines.length - 1} lines`,
      `write at most ${LINES_MAX}, and the others by network or plan`,
    );
    return null;
  }
  let mistakes = 0;
  for (let i = 0; i < lines.length; i++) {
    const line = lines[i] ?? '';
    const bare = line.trim();
    if (bare === '' || bare.startsWith('#')) continue;
    try {
      add(line);
    } catch (error) {
      if (!(error instanceof Mistake)) throw error;
      report(here, `${name}:${i + 1}: ${error.what}`, error.fix);
      if (++mistakes === MISTAKES_MAX) break;
    }
  }
  return mistakes > 0 ? null : text;
}
