import { isIPv6 } from 'node:net';

/** Writes host and port as in a URL (RFC 3986 3.2). */
export function authority(host: string, port: number): string {
  return `${isIPv6(host) ? `[${host}]` : host}:${port}`;
}
