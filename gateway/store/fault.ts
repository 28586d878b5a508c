/** Explains store failures in one sentence that an operator can act on. */

/**
 * timeout: the server has stopped answering. disconnected: no connection, or it broke before the answer. out-of-memory: the
 * server has reached its maxmemory. read-only: the server is a replica. error: any other error reply.
 */
export type FaultKind = 'timeout' | 'disconnected' | 'out-of-memory' | 'read-only' | 'error';

export class StoreFault extends Error {
  readonly kind: FaultKind;

  constructor(kind: FaultKind, message: string, cause?: unknown) {
    super(message, { cause });
    this.name = 'StoreFault';
    this.kind = kind;
  }
}

/** Tells whether the server answered with an error, so that it has not carried out the call. */
export function isErrorReply(error: unknown): boolean {
  return error instanceof StoreFault && error.kind !== 'timeout' && error.kind !== 'disconnected';
}

/** A failure that retrying cannot fix, such as a wrong password. */
export class StoreRefusedError extends Error {}

const REFUSED = /\b(?:NOAUTH|WRONGPASS|NOPERM|DB index is out of range|invalid DB index|ERR AUTH)\b/;

/** @throws StoreRefusedError if retrying cannot fix the fault */
export function throwIfRefused(cause: Error): void {
  const { message } = cause;
  if (REFUSED.test(message))
    throw new StoreRefusedError(`the store at GATEWAY_REDIS_URL refuses this gateway: ${message}`, { cause });
}

/**
 * These say what to do about errors that do not say it themselves, by a pattern for code and message. The first match wins. They are not anchored: for
 * an error inside a script, Redis 6 quotes the original reply in the middle of its own, and Redis 7 begins with it.
 */
const MEANINGS: readonly (readonly [RegExp, string])[] = [
  [/\bOOM\b/, 'the store is out of memory: raise its maxmemory'],
  [/\bNOAUTH\b/, 'the server asks for a password, and GATEWAY_REDIS_URL has none'],
  [/\bWRONGPASS\b|invalid password/, 'the server does not accept the user and password of GATEWAY_REDIS_URL'],
  [/\bNOPERM\b/, 'the user of GATEWAY_REDIS_URL lacks a permission'],
  [/max number of clients/, 'the server takes no more connections: raise its maxclients'],
  [
    /cluster support disabled/,
    'the server is not part of a Cluster: write redis:// instead of redis+cluster://',
  ],
  [/\bMOVED\b|\bASK\b|\bCROSSSLOT\b/, 'the server is part of a Cluster: write redis+cluster://'],
  [/No such master/, 'the sentinels do not know the service that GATEWAY_REDIS_URL names'],
  [/Unknown RESP type/, 'the server there is not Redis'],
  [/ECONNREFUSED/, 'nothing listens there'],
  [/ETIMEDOUT/, 'it does not answer in time; if the address begins with rediss, does it speak TLS?'],
  [
    /closed before the first answer/,
    'the server closes new connections before it has answered; has it reached its maxclients?',
  ],
  [/EPIPE|ECONNRESET|closed/, 'the server is gone, or has closed the connection'],
  [/Socket timeout/, 'it has stopped answering'],
  [
    /SELF_SIGNED|UNABLE_TO_VERIFY|UNABLE_TO_GET_ISSUER/,
    'its certificate comes from an authority that is not trusted: add ?ca=FILE to GATEWAY_REDIS_URL',
  ],
  [
    /CERTIFICATE_REQUIRED|HANDSHAKE_FAILURE|BAD_CERTIFICATE|UNKNOWN_CA/,
    'it does not accept our certificate: add ?cert=FILE&key=FILE to GATEWAY_REDIS_URL',
  ],
  [/WRONG_VERSION_NUMBER|PACKET_LENGTH_TOO_LONG/, 'if the address begins with rediss, does it speak TLS?'],
];

const KINDS: readonly (readonly [RegExp, FaultKind])[] = [
  [/\bOOM\b/, 'out-of-memory'],
  [/\bREADONLY\b/, 'read-only'],
  [/Socket timeout/, 'timeout'],
  [/closed|ECONN|EPIPE|ETIMEDOUT|writeable/i, 'disconnected'],
];

export function faultOf(cause: unknown, where: string): StoreFault {
  if (cause instanceof StoreFault) return cause;
  const error = cause instanceof Error ? cause : new Error(String(cause));
  const text = `${'code' in error ? error.code : ''} ${error.message}`;
  // The library's own text names one of its options, which operators cannot set.
  if (/max retries per request/i.test(text))
    return new StoreFault('disconnected', `${where}: the connection broke before the answer came`, error);
  const meaning = MEANINGS.find(([pattern]) => pattern.test(text))?.[1];
  // The parser of replies adds a request to its own users.
  const message = error.message.replace(/\.? Please report this\.$/, '').trim();
  const detail = message === '' ? text.trim() : message;
  const kind = KINDS.find(([pattern]) => pattern.test(text))?.[1] ?? 'error';
  return new StoreFault(
    kind,
    meaning === undefined ? `${where}: ${detail}` : `${where}: ${meaning} (${detail})`,
    error,
  );
}
