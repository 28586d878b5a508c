import { readFileSync } from 'node:fs';

/** The type of a parsed body: a test says what it expects by reading it. */
export type Json = ReturnType<typeof JSON.parse>;

/** Reads a file with a document on each line, such as an access log. */
export function jsonLines(file: string): Json[] {
  const lines = readFileSync(file, 'utf8').split('\n');
  return lines.filter((line) => line !== '').map((line) => JSON.parse(line));
}
