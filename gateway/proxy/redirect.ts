/**
 * Redirects that name the address on which the application listens. A client that followed one would leave the gateway,
 * and with it every limit. NGINX sends them by default: it takes the host from the request, and adds its own port.
 *
 * They become relative, so they also fit a client that came by TLS. All others stay as they are.
 */
import { unixPart } from '#shared/unix-socket.ts';

/** Without a protocol, it is that of the page. */
const ABSOLUTE = /^(https?:)?\/\/([^/?#\\]*)/i;
/** Browsers read a backslash as a slash and remove tabs, so these would begin with the name of another host. */
const LIKE_HOST = /^\/[/\\\t]/;
const PORT = /:\d*$/;
const USUAL_PORT: Readonly<Record<string, RegExp>> = { 'http:': /:80$/, 'https:': /:443$/ };

/** @returns null for a Unix socket, which has no address that a client could follow */
export function applicationAddress(origin: string): URL | null {
  return unixPart(origin) === null ? new URL(origin) : null;
}

/**
 * @param headers of the reply, as alternating names and values; changed in place
 * @param sent those of the request that the application got; Host is the first, if there is one
 */
export function keepRedirect(
  status: number,
  headers: string[],
  sent: readonly string[],
  application: URL | null,
): void {
  // Only these replies send clients to another address (RFC 9110 10.2.2).
  const sendsAway = status === 201 || (status >= 300 && status < 400);
  if (!sendsAway || application === null) return;
  const host = sent[0] === 'Host' ? sent[1] : undefined;
  for (let i = 0; i < headers.length; i += 2)
    if (headers[i]?.toLowerCase() === 'location')
      headers[i + 1] = relative(headers[i + 1] ?? '', host, application);
}

function relative(location: string, host: string | undefined, application: URL): string {
  const [origin, protocol = application.protocol, named = ''] = ABSOLUTE.exec(location) ?? [];
  if (origin === undefined || protocol.toLowerCase() !== application.protocol) return location;
  const authority = named.toLowerCase().replace(USUAL_PORT[application.protocol] ?? PORT, '');
  const seen = host?.toLowerCase();
  const ofRequest = `${seen?.replace(PORT, '')}:${application.port}`;
  // It may listen on the port that the client has used.
  const isOwn = authority !== seen && (authority === application.host || authority === ofRequest);
  if (!isOwn) return location;
  const path = location.slice(origin.length).replace(/^[/\\]?/, '/');
  return LIKE_HOST.test(path) ? `/.${path}` : path;
}
