/** Builds the header section that is forwarded to the upstream. */
import type { HeaderFilter } from '#gateway/http/header-filter.ts';
import { dropNominated } from '#gateway/http/hop-by-hop.ts';
import type { CheckedHead } from '#gateway/http/request-head.ts';
import type { RequestOrigin } from '#gateway/http/request-origin.ts';

/**
 * The fields that frame the body are added when the request is written.
 *
 * @param rawHeaders alternating names and values, as node:http gives them
 * @param host value of Host
 * @returns alternating names and values
 */
export function upstreamHeaders(
  rawHeaders: readonly string[],
  head: CheckedHead,
  origin: RequestOrigin,
  filter: HeaderFilter,
  host: string,
): string[] {
  const { forwardedFor, forwardedProto, forwardedHost } = head;
  const headers: string[] = ['Host', host];
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (!filter.stops(name, origin.trusted)) headers.push(name, rawHeaders[i + 1] ?? '');
  }
  if (head.nominated !== null) dropNominated(headers, head.nominated);

  headers.push('X-Forwarded-For', forwardedFor === '' ? origin.peer : `${forwardedFor}, ${origin.peer}`);
  headers.push(
    'X-Forwarded-Proto',
    origin.trusted && forwardedProto !== undefined ? forwardedProto : origin.scheme,
  );
  headers.push('X-Forwarded-Host', origin.trusted && forwardedHost !== undefined ? forwardedHost : host);
  return headers;
}
