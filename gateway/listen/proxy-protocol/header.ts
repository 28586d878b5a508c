/**
 * Reads the header of the PROXY protocol, versions 1 and 2, in which a TCP proxy names the client of a connection
 * (https://www.haproxy.org/download/2.6/doc/proxy-protocol.txt).
 */
import { isIPv4, isIPv6 } from 'node:net';

interface ProxyHeader {
  /** Length of the header in bytes. */
  readonly bytes: number;
  /**
   * The client's address; null if the proxy made the connection itself, such as for a health check, or names no
   * address.
   */
  readonly address: string | null;
}

const V1_BEGINS = Buffer.from('PROXY ');
/** The longest header of version 1, with its line break. */
const V1_BYTES_MAX = 107;
const PORT = /^(?:0|[1-9]\d{0,4})$/;

const V2_BEGINS = Buffer.from('\r\n\r\n\0\r\nQUIT\n', 'latin1');
const V2_FIXED_BYTES = 16;
/** Usual headers have some hundred bytes of addresses and extensions. */
const V2_BYTES_MAX = 4096;
const VERSION_2 = 0x20;
const LOCAL = 0;
const PROXY = 1;
const UNKNOWN = 0x00;
const TCP4 = 0x11;
const TCP6 = 0x21;
const UNIX_STREAM = 0x31;

/**
 * @param bytes all bytes received so far
 * @returns `more` if the header is not complete; `bad` if there is none
 */
export function readProxyHeader(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  if (begins(bytes, V1_BEGINS)) return readV1(bytes);
  return begins(bytes, V2_BEGINS) ? readV2(bytes) : 'bad';
}

function begins(bytes: Buffer, start: Buffer): boolean {
  const length = Math.min(bytes.length, start.length);
  return bytes.compare(start, 0, length, 0, length) === 0;
}

function readV1(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  const end = bytes.subarray(0, V1_BYTES_MAX).indexOf('\r\n');
  if (end < 0) return bytes.length < V1_BYTES_MAX ? 'more' : 'bad';
  const [, family, source = '', destination = '', sourcePort = '', destinationPort = '', ...rest] = bytes
    .toString('latin1', 0, end)
    .split(' ');
  // The rest of a line with UNKNOWN must be ignored.
  if (family === 'UNKNOWN') return { bytes: end + 2, address: null };
  const isAddress = family === 'TCP4' ? isIPv4 : family === 'TCP6' ? isIPv6 : null;
  const isRight =
    isAddress?.(source) === true &&
    isAddress(destination) &&
    !source.includes('%') &&
    isPort(sourcePort) &&
    isPort(destinationPort) &&
    rest.length === 0;
  return isRight ? { bytes: end + 2, address: source } : 'bad';
}

function isPort(text: string): boolean {
  return PORT.test(text) && Number(text) <= 65_535;
}

function readV2(bytes: Buffer): ProxyHeader | 'more' | 'bad' {
  if (bytes.length < V2_FIXED_BYTES) return 'more';
  const command = bytes.readUInt8(12) - VERSION_2;
  const family = bytes.readUInt8(13);
  const length = V2_FIXED_BYTES + bytes.readUInt16BE(14);
  if ((command !== LOCAL && command !== PROXY) || length > V2_BYTES_MAX) return 'bad';
  if (bytes.length < length) return 'more';
  const nobody: ProxyHeader = { bytes: length, address: null };
  if (command === LOCAL) return nobody;
  const body = bytes.subarray(V2_FIXED_BYTES, length);
  switch (family) {
    case UNKNOWN:
      return nobody;
    case UNIX_STREAM:
      return body.length < 216 ? 'bad' : nobody;
    case TCP4:
      return body.length < 12 ? 'bad' : { ...nobody, address: body.subarray(0, 4).join('.') };
    case TCP6:
      return body.length < 36 ? 'bad' : { ...nobody, address: ipv6Text(body) };
    default:
      // Refuse datagrams and undefined address families.
      return 'bad';
  }
}

function ipv6Text(body: Buffer): string {
  return Array.from({ length: 8 }, (_, i) => body.readUInt16BE(2 * i).toString(16)).join(':');
}
