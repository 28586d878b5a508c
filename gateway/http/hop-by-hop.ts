/** Headers of one connection, which proxies do not forward in either direction (RFC 9110 7.6.1). */

export const HOP_BY_HOP: readonly string[] = [
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'transfer-encoding',
  'upgrade',
];

/** A Connection header with the option `close`. */
export const CLOSE = /(?:^|,)[ \t]*close[ \t]*(?:,|$)/i;

/** A Connection header cannot remove these. */
const NEVER_NOMINATED: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'close',
  'keep-alive',
  'upgrade',
]);

/**
 * Reads which headers a Connection field makes hop-by-hop.
 *
 * @param before the result for the fields before it
 * @returns lower-case names; null if there are none
 */
export function nominated(
  connection: string,
  before: ReadonlySet<string> | null,
): ReadonlySet<string> | null {
  if (connection.length <= 10) {
    const lower = connection.toLowerCase();
    if (lower === 'keep-alive' || lower === 'close' || lower === 'upgrade') return before;
  }
  const names = connection
    .split(',')
    .map((name) => name.trim().toLowerCase())
    .filter((name) => name !== '' && !NEVER_NOMINATED.has(name));
  return names.length === 0 ? before : new Set([...(before ?? []), ...names]);
}

/** Removes headers in place. @param headers alternating names and values @param dropped lower-case names */
export function dropNominated(headers: string[], dropped: ReadonlySet<string>): void {
  let kept = 0;
  for (let i = 0; i < headers.length; i += 2) {
    const name = headers[i] ?? '';
    if (dropped.has(name.toLowerCase())) continue;
    headers[kept++] = name;
    headers[kept++] = headers[i + 1] ?? '';
  }
  headers.length = kept;
}
