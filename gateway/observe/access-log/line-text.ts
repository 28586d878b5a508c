/**
 * Formats a line of the access log. Lines are ASCII and at most as long as a pipe accepts in one piece from several
 * writers (PIPE_BUF on Linux). A longer line loses fields and gets the mark `shortened`.
 */
import type { LogLine } from '#gateway/observe/log-line.ts';

export const LINE_BYTES_MAX = 4096;
/** Byte limits for the fields of a line that is too long. Together they leave room for the other fields. */
const POLICIES_MAX = 700;
const UNCOUNTED_MAX = 200;
const UNPROVEN_MAX = 300;
const MARKED_MAX = 200;
const IDENTITIES_MAX = 900;
const PATH_MAX = 900;
/** Bytes around a list item: two quotes and a comma. An object entry has twice as many. */
const AROUND = 3;

const NOT_ASCII = /[^\0-\x7f]/g;

export function lineText(line: LogLine): string {
  const text = written(line);
  if (text.length <= LINE_BYTES_MAX) return text;
  const { policies, uncounted, unproven, marked, identities } = line;
  const shorter = {
    ...line,
    policies: within(policies, POLICIES_MAX),
    uncounted: within(uncounted, UNCOUNTED_MAX),
    unproven: within(unproven, UNPROVEN_MAX),
    marked: within(marked, MARKED_MAX),
    shortened: true,
  };
  const fitting = written(shorter);
  if (fitting.length <= LINE_BYTES_MAX) return fitting;
  return written({
    ...shorter,
    identities: Object.fromEntries(entriesWithin(Object.entries(identities), IDENTITIES_MAX)),
    path: line.path === null ? null : pathWithin(line.path, PATH_MAX),
  });
}

function written(line: object | string): string {
  const text = `${JSON.stringify(line)}\n`;
  return text.search(NOT_ASCII) < 0 ? text : text.replace(NOT_ASCII, escaped);
}

function escaped(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

function within(names: readonly string[], bytesMax: number): readonly string[] {
  let bytes = 0;
  const end = names.findIndex((name) => {
    bytes += name.length + AROUND;
    return bytes > bytesMax;
  });
  return end < 0 ? names : names.slice(0, end);
}

function entriesWithin(entries: readonly [string, string][], bytesMax: number): [string, string][] {
  let bytes = 0;
  return entries.filter(([name, digest]) => {
    bytes += name.length + digest.length + 2 * AROUND;
    return bytes <= bytesMax;
  });
}

/** Shortens a path. One character may take six bytes (\uXXXX). */
function pathWithin(path: string, bytesMax: number): string {
  return written(path).length <= bytesMax ? path : path.slice(0, Math.floor(bytesMax / 6) - 1);
}
