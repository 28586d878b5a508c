/** Explains in words why the application does not answer, and how to correct it. */

/** `code` is that of Node.js or of exchange.ts. */
export interface UpstreamFault {
  readonly code: string;
  readonly message: string;
  /** Whether no connection could be made. */
  readonly isUnreachable: boolean;
}

const LISTENING = 'start the application, or set GATEWAY_UPSTREAM to where it listens';
const REACHABLE = 'correct the host in GATEWAY_UPSTREAM, or the network between here and there';
const WORKING = "look at the application's own log";

/** Patterns for code and message of a fault. The first match wins. */
const REASONS: readonly (readonly [RegExp, reason: string, fix: string])[] = [
  [/ECONNREFUSED/, 'nothing listens there', LISTENING],
  [/ENOENT/, 'there is no such socket', LISTENING],
  [/EACCES|EPERM/, 'the gateway lacks the permission to connect', 'let its user read and write the socket'],
  [
    /ENOTFOUND|EAI_AGAIN|EAI_NODATA/,
    'its name cannot be resolved',
    'correct the host in GATEWAY_UPSTREAM, or the name server that the gateway asks',
  ],
  [/EHOSTUNREACH|ENETUNREACH|EHOSTDOWN|ENETDOWN/, 'there is no way to its host', REACHABLE],
  [
    /EADDRNOTAVAIL|EMFILE|ENFILE/,
    'this machine has no port or file left for a connection',
    'run floodgate doctor',
  ],
  [
    /CERT_HAS_EXPIRED|CERT_NOT_YET_VALID/,
    'its certificate is not valid today',
    'renew it and reload the application, or set the clocks by NTP',
  ],
  [
    /ERR_TLS_CERT_ALTNAME_INVALID/,
    'its certificate was issued for another name',
    'write a name of the certificate into GATEWAY_UPSTREAM, or issue one for the host that stands there',
  ],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER|CERT_UNTRUSTED|INVALID_CA/,
    'its certificate comes from an authority that is not trusted',
    'start the gateway with NODE_EXTRA_CA_CERTS=FILE, the PEM file of this authority, or let the application send the whole chain',
  ],
  [
    /CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA/,
    'it refuses the TLS handshake',
    'let it accept TLS 1.2 or 1.3 without a certificate of the client',
  ],
  [
    /WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG|UNEXPECTED_MESSAGE|EPROTO/,
    'GATEWAY_UPSTREAM begins with https: does it speak TLS?',
    'write http:// into GATEWAY_UPSTREAM if it does not',
  ],
  [
    /ETIMEDOUT|CONNECT_TIMEOUT|TimeoutError/,
    'it does not answer in time',
    'if it is only slow, GATEWAY_UPSTREAM_TIMEOUT_MS gives it more time',
  ],
  [/UPSTREAM_BROKEN/, 'it broke off its reply', WORKING],
  [/UPSTREAM_CLOSED|UND_ERR_SOCKET|ECONNRESET|EPIPE/, 'it closed the connection without a reply', WORKING],
  [
    /UPSTREAM_BAD_REPLY|HPE_|does not match the HTTP/,
    'its reply cannot be forwarded',
    'correct the reply, or set GATEWAY_UPSTREAM to the port where it speaks HTTP',
  ],
];

/** A certificate may have thousands of names. */
const DETAIL_MAX = 200;

/** The reason ends with what Node.js says of it. */
export function upstreamReason({ code, message }: Omit<UpstreamFault, 'isUnreachable'>) {
  const text = `${code} ${message}`;
  const [, meaning, fix] = REASONS.find(([pattern]) => pattern.test(text)) ?? [null, '', WORKING];
  // Without a message, all addresses of the host have failed.
  const detail = (message === '' ? code : message).slice(0, DETAIL_MAX);
  return { reason: meaning === '' ? detail : `${meaning} (${detail})`, fix };
}
