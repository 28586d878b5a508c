import { readFileSync } from 'node:fs';

/** The type of a parsed body: a test says what it expects by reading it. */
export type Json = ReturnType<typeof JSON.parse>;

/**
 * Reads a file with a document on each line, such as an access log. A last line without its end is left out, because a
 * reader can meet a write half-way.
 */
export function jsonLines(file: string): Json[] {
  const whole = readFileSync(file, 'utf8').split('\n').slice(0, -1);
  return whole.map((line) => JSON.parse(line));
}
