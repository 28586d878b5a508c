/**
 * Reads the host that a request is for. Each host has one canonical form: lower case, A-labels (punycode), no port and no
 * final dot. A host that two servers could read differently has none.
 */
import { isIPv4, isIPv6, type Socket } from 'node:net';
import { domainToASCII, domainToUnicode } from 'node:url';

const NAME_LENGTH_MAX = 253;
/** Applications in containers have names with underscores. */
const LABEL = '[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?';
const NAME = new RegExp(`^${LABEL}(?:\\.${LABEL})*$`, 'i');
/** Many programs read 0x7f.1 as an address. */
const NUMBER_AT_END = /(?:^|\.)(?:\d+|0x[0-9a-f]*)$/;
const A_LABEL = /(?:^|\.)xn--/;
const PORT = /:\d*$/;

/** @returns the canonical form of a host without a port; null if it has none */
export function canonicalHost(text: string): string | null {
  if (text.startsWith('[')) return canonicalIPv6(text);
  const sent = text.endsWith('.') ? text.slice(0, -1) : text;
  if (sent.length > NAME_LENGTH_MAX || !NAME.test(sent)) return null;
  const name = sent.toLowerCase();
  if (NUMBER_AT_END.test(name)) return isIPv4(name) ? name : null;
  return A_LABEL.test(name) && !hasSoundLabels(name) ? null : name;
}

function canonicalIPv6(text: string): string | null {
  const address = /^\[([0-9a-f:.]+)\]$/i.exec(text)?.[1] ?? '';
  return isIPv6(address) ? new URL(`http://${text}`).hostname : null;
}

/** Whether all A-labels stand for names, and no shorter spelling stands for the same: `xn--shop-` could mean `shop`. */
function hasSoundLabels(name: string): boolean {
  const decoded = domainToUnicode(name);
  return !A_LABEL.test(decoded) && domainToASCII(decoded) === name;
}

/** @param text a host, and maybe a port */
function hostIn(text: string): string | null {
  return canonicalHost(text.trim().replace(PORT, ''));
}

/** uri-host [ ":" port ] (RFC 9110 7.2), with a name that is not empty, because http and https need one (4.2.1). */
const AUTHORITY = /^(?:\[[0-9A-Fa-f:.]+\]|(?:[A-Za-z0-9\-._~!$&'()*+,;=]|%[0-9A-Fa-f]{2})+)(?::\d*)?$/;

/** Almost every Host. This pattern takes half the time of the whole one. */
const USUAL = /^[A-Za-z0-9\-._~]+(?::\d*)?$/;

export function isAuthority(text: string): boolean {
  return USUAL.test(text) || AUTHORITY.test(text);
}

/** Returns the authority of the address that a client has connected to, for requests of HTTP/1.0 without Host. */
export function localAuthority(
  { localAddress = 'localhost', localPort }: Pick<Socket, 'localAddress' | 'localPort'>,
  scheme: 'http' | 'https',
): string {
  const [address = ''] = localAddress.replace(/^::ffff:/, '').split('%');
  const host = isIPv6(address) ? `[${address}]` : address;
  const isUsual = localPort === undefined || localPort === (scheme === 'https' ? 443 : 80);
  return isUsual ? host : `${host}:${localPort}`;
}

type RequestHost =
  | { readonly ok: true; readonly host: string }
  | { readonly ok: false; readonly reason: string };

/**
 * Returns the canonical host of a request: of X-Forwarded-Host if a trusted proxy sends it, of Host otherwise.
 *
 * @param authority the host and port of an absolute request target; null if the target is a path
 * @param trusted the peer is a trusted proxy
 */
export function requestHost(
  { host = '', forwardedHost }: Readonly<Record<'host' | 'forwardedHost', string | undefined>>,
  authority: string | null,
  trusted: boolean,
): RequestHost {
  const isForwarded = trusted && forwardedHost !== undefined;
  const field = isForwarded ? 'X-Forwarded-Host' : 'Host header';
  // Applications differ in which entry of a list they use, so all have to be the same.
  const [first = null, ...others] = (isForwarded ? forwardedHost.split(',') : [host]).map(hostIn);
  if (first === null || others.includes(null))
    return { ok: false, reason: `the policies depend on the host, and the ${field} does not name one` };
  if (others.some((other) => other !== first))
    return { ok: false, reason: `the ${field} names different hosts` };
  if (authority !== null && hostIn(authority) !== first)
    return { ok: false, reason: `the request target and the ${field} name different hosts` };
  return { ok: true, host: first };
}
