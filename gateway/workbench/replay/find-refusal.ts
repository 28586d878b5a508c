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
  for (const log of logs) {
    const text = new LogText(log);
    try {
      for (let lines = await text.next(); lines !== null; lines = await text.next()) {
        const found = refusalIn(lines, id);
        if (found !== null) return found;
      }
    } finally {
      await text.close();
    }
  }
  return null;
}

/** @param lines each with its newline */
function refusalIn(lines: string, id: string): RefusalLine | null {
  for (let at = lines.indexOf(`"${id}"`); at >= 0; at = lines.indexOf(`"${id}"`, at + 1)) {
    const line = lines.slice(lines.lastIndexOf('\n', at) + 1, lines.indexOf('\n', at));
    try {
      const fields: unknown = JSON.parse(line);
      if (typeof fields === 'object' && fields !== null && 'id' in fields && fields.id === id)
        return fields as RefusalLine;
    } catch {
      // Another program may have added text around the line.
    }
  }
  return null;
}
