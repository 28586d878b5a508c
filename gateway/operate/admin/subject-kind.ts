/**
 * Tells what an operator names: an address, a network, a digest or a key. A key can be any text. So a mistyped address
 * would be taken for a key that nobody has, and the operator would believe that the client is banned. A text that looks
 * like an address, a network or a host is a key only if the operator says so.
 */
import { isIP } from 'node:net';
import { parseNetwork } from '#shared/client-address.ts';
import { AdminError } from './input.ts';

export type SubjectKind = 'address' | 'network' | 'key' | 'digest';

const DIGEST = /^[\w-]{21}[AQgw]$/;
/** Digits and dots, or two colons and hexadecimal digits, also with a port, a length or a wildcard. */
const LIKE_ADDRESS = /^\[?(?=.*[.:*])(?:[\d.*]+|(?=.*:.*:)[\da-f:.%*]+)\]?(?::\d+)?(?:\/.*|-[\da-f.:]+)?$/i;
/** Labels with a name at the end, also with a scheme, a port or a path. */
const LIKE_HOST =
  /^(?:[a-z][a-z0-9+.-]*:\/\/.*|localhost|(?:\*\.)?(?:[a-z0-9-]{1,63}\.)+(?:[a-z]{2,24}|xn--[a-z0-9-]+)\.?)(?::\d+)?(?:\/.*)?$/i;
/** The last character was cut off or changed: `192.0.2.x`. */
const LIKE_IPV4 = /^(?:\d{1,3}[.,]){2,3}[^.,]{0,3}(?:\/\d*)?$/;

export function isDigest(text: string): boolean {
  return DIGEST.test(text);
}

/** @throws AdminError 400 if the text looks like an address, a network or a host and is none */
export function kindOf(text: string): SubjectKind {
  if (isIP(text) !== 0) return 'address';
  if (isDigest(text)) return 'digest';
  if (isWrittenNetwork(text)) return 'network';
  if (LIKE_ADDRESS.test(text) || LIKE_IPV4.test(text))
    throw new AdminError(
      400,
      `"${text.slice(0, 60)}" looks like an address or a network and is neither; write one such as 192.0.2.1, 192.0.2.0/24 or 2001:db8::/32, or use --key if it is a key`,
    );
  if (LIKE_HOST.test(text))
    throw new AdminError(400, 'a host is no client; name its address, or use --key if the text is a key');
  return 'key';
}

function isWrittenNetwork(text: string): boolean {
  if (!text.includes('/')) return false;
  try {
    parseNetwork(text);
    return true;
  } catch {
    return false;
  }
}
