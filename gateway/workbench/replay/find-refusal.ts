/** Finds the line of a refusal in the gateway's own access logs. */
import type { Readable } from 'node:stream';
import { LogText } from './log-text.ts';

/** The fields of the line, as observe/access-log writes them. */
export type RefusalLine = Readonly<Record<string, unknown>>;

/**
 * @param logs paths or streams, also compressed with gzip
 * @returns null if no log has the line
 * @throws the error of a file that cannot be read
 */
export async function findRefusal(
  logs: readonly (string | Readable)[],
  id: string,
): Promise<RefusalLine | null> {
  const quoted = `"${id}"`;
  for (const log of logs)
    for await (const lines of new LogText(log).portions())
      for (const line of lines) {
        const found = line.includes(quoted) ? fieldsOf(line) : null;
        if (found?.id === id) return found;
      }
  return null;
}

/** @returns null if it is no line of the access log, such as one to which another program has added text */
function fieldsOf(line: string): RefusalLine | null {
  try {
    const fields: unknown = JSON.parse(line);
    return typeof fields === 'object' ? (fields as RefusalLine | null) : null;
  } catch {
    return null;
  }
}
