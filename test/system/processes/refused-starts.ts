/** Reads refused-starts.md. */
import { join } from 'node:path';
import { casesUnder } from '#test/support/arrow-cases.ts';

interface RefusedStart {
  readonly line: string;
  readonly env: Readonly<Record<string, string>>;
  /** Parts of the message. */
  readonly told: readonly string[];
}

/** @param values of the names behind `$` */
export function refusedStarts(heading: string, values: Readonly<Record<string, string>>): RefusedStart[] {
  const filled = (text: string): string =>
    text.replace(/\$(\w+)/g, (all, name: string) => values[name] ?? all);
  return casesUnder(join(import.meta.dirname, 'refused-starts.md'), heading).map(([line = '', ...told]) => ({
    line,
    env: Object.fromEntries(line.split(' ').map((setting) => filled(setting).split(/=(.*)/))),
    told: told.map(filled),
  }));
}
