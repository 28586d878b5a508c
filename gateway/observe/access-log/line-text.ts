/**
 * Formats a line of the access log. Lines are ASCII and at most as long as a pipe accepts in one piece from several
 * writers (PIPE_BUF on Linux). A longer line loses fields and gets the mark `shortened`.
 */
import type { LogLine } from '#gateway/observe/log-line.ts';

export const LINE_BYTES_MAX = 4096;
/** Length of a path in a line that is too long without it. One character may take six bytes (\uXXXX). */
const PATH_MAX = 400;

const NOT_ASCII = /[^\0-\x7f]/g;

export function lineText(line: LogLine): string {
  const text = written(line);
  if (text.length <= LINE_BYTES_MAX) return text;
  const shorter = { ...line, policies: [], uncounted: [], unproven: [], marked: [], shortened: true };
  const fitting = written(shorter);
  if (fitting.length <= LINE_BYTES_MAX) return fitting;
  return written({ ...shorter, identities: {}, path: line.path?.slice(0, PATH_MAX) ?? null });
}

function written(line: object): string {
  const text = `${JSON.stringify(line)}\n`;
  return text.search(NOT_ASCII) < 0 ? text : text.replace(NOT_ASCII, escaped);
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}
