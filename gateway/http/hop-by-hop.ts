/** Headers that end here (RFC 9110 7.6.1). */

/** Never forwarded in either direction. */
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

/** Framing and routing belong to the message, whatever a Connection header claims. */
const NEVER_NOMINATED: ReadonlySet<string> = new Set([
  'host',
  'content-length',
  'close',
  'keep-alive',
  'upgrade',
]);

/**
 * The header names that the Connection fields of a message nominate as hop-by-hop, lower-case; null when there are none.
 *
 * @param connection the value of one field
 * @param before what the fields before it nominated
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

/** @param headers names and values in turn; those named in `dropped` are taken out in place */
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
