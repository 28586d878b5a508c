/**
 * TLS handshakes on connections that are already counted, so that no client gets one beyond its share.
 *
 * The first byte is checked before the handshake, so that clients that speak plain HTTP get a readable reply.
 */
import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { KeyPair } from './key-pair.ts';

/** Timeout of a whole handshake, and of the wait for its first byte. */
const HANDSHAKE_MS: Millis = 10_000;
/**
 * Each client may begin so many times its handshakes of a second within this time. A handshake costs the gateway a
 * signature and the client almost nothing, and a bound on connections is not enough if the client closes them at once.
 */
const PACE_MS: Millis = 4000;
/** Maximum number of clients whose handshakes are counted. Then all of them begin anew. */
const CLIENTS_MAX = 4096;
/** The record type of every ClientHello (RFC 8446 5.1). */
const HANDSHAKE_RECORD = 22;

/** `pace`: the client has begun so many handshakes that its turn would have come too late. */
type HandshakeFailure = 'timeout' | 'protocol' | 'closed' | 'pace';

interface HandshakesOptions {
  readonly clock: Clock;
  /** Average number of handshakes that one client may begin in a second. */
  readonly perClient: number;
  /** Called when a client has begun too many handshakes, so it waits. */
  readonly onTooFast: () => void;
  /** Default: HANDSHAKE_MS. Tests set a shorter time. */
  readonly timeoutMs?: Millis;
}

export class Handshakes {
  readonly #server: Server;
  /** Callbacks by the addresses of both ends, because node:tls does not tell which socket it secured. */
  readonly #pending = new Map<string, (secured: TLSSocket) => void>();
  readonly #options: HandshakesOptions;
  readonly #timeoutMs: Millis;
  /** Number of handshakes that each client has begun since the last time that all began anew. */
  readonly #begun = new Map<string, number>();
  #beginAnewAt: Millis = 0;
  readonly failures: Record<HandshakeFailure, number> = { timeout: 0, protocol: 0, closed: 0, pace: 0 };
  pair: KeyPair;

  constructor(pair: KeyPair, options: HandshakesOptions) {
    this.pair = pair;
    this.#options = options;
    this.#timeoutMs = options.timeoutMs ?? HANDSHAKE_MS;
    this.#server = createServer({
      ...contextOf(pair),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: this.#timeoutMs,
    });
    this.#server.on('secureConnection', (secured) => this.#onSecure(secured));
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, secured) => {
      this.failures[failureOf(error)]++;
      secured.destroy();
    });
  }

  /** Uses another certificate for new connections. */
  use(pair: KeyPair): void {
    this.pair = pair;
    this.#server.setSecureContext(contextOf(pair));
  }

  /**
   * @param socket not read yet. It is closed if the handshake fails
   * @param client its address, for the pace; null if unknown
   * @param onSecure called at most once
   * @param onPlain called instead if the client does not use TLS
   */
  begin(
    socket: Socket,
    client: string | null,
    onSecure: (secured: TLSSocket) => void,
    onPlain: () => void,
  ): void {
    readFirstBytes(socket, this.#timeoutMs, firstRecord, (found) => {
      if (found === 'good') {
        this.#secureInTurn(socket, client, this.#options.clock() + this.#timeoutMs, onSecure);
        return;
      }
      this.failures[FAILURES[found]]++;
      if (found === 'bad') onPlain();
      else socket.destroy();
    });
  }

  /** A client that has begun too many waits until all begin anew, because it may be many people behind one address. */
  #secureInTurn(
    socket: Socket,
    client: string | null,
    deadline: Millis,
    onSecure: (secured: TLSSocket) => void,
  ): void {
    const now = this.#options.clock();
    if (client === null || this.#mayBegin(client, now)) {
      this.#secure(socket, onSecure);
      return;
    }
    this.#options.onTooFast();
    if (this.#beginAnewAt > deadline) {
      this.failures.pace++;
      socket.destroy();
      return;
    }
    const again = (): void => this.#secureInTurn(socket, client, deadline, onSecure);
    const timer = setTimeout(again, this.#beginAnewAt - now);
    socket.once('close', () => clearTimeout(timer));
  }

  #mayBegin(client: string, now: Millis): boolean {
    if (now >= this.#beginAnewAt || this.#begun.size >= CLIENTS_MAX) {
      this.#begun.clear();
      this.#beginAnewAt = now + PACE_MS;
    }
    const begun = this.#begun.get(client) ?? 0;
    if (begun >= (this.#options.perClient * PACE_MS) / 1000) return false;
    this.#begun.set(client, begun + 1);
    return true;
  }

  #secure(socket: Socket, onSecure: (secured: TLSSocket) => void): void {
    const address = addressOf(socket);
    this.#pending.set(address, onSecure);
    // A client that ends its side cannot finish a handshake. After the handshake it may end its side and wait for the
    // reply.
    socket.allowHalfOpen = false;
    socket.once('close', () => {
      if (this.#pending.get(address) === onSecure) this.#pending.delete(address);
    });
    this.#server.emit('connection', socket);
  }

  #onSecure(secured: TLSSocket): void {
    const address = addressOf(secured);
    const onSecure = this.#pending.get(address);
    // A socket that is reset at this moment has no address.
    if (onSecure === undefined) {
      secured.destroy();
      return;
    }
    this.#pending.delete(address);
    secured.allowHalfOpen = true;
    onSecure(secured);
  }
}

const FAILURES = { bad: 'protocol', late: 'timeout', gone: 'closed' } as const;

function contextOf({ cert, key }: KeyPair): TlsOptions {
  return { cert, key, minVersion: 'TLSv1.2', secureOptions: constants.SSL_OP_NO_RENEGOTIATION };
}

function firstRecord(bytes: Buffer): 0 | 'bad' {
  return bytes[0] === HANDSHAKE_RECORD ? 0 : 'bad';
}

function addressOf({ remoteAddress, remotePort, localAddress, localPort }: Socket): string {
  return `${remoteAddress} ${remotePort} ${localAddress} ${localPort}`;
}

function failureOf({ code }: NodeJS.ErrnoException): HandshakeFailure {
  if (code === 'ERR_TLS_HANDSHAKE_TIMEOUT') return 'timeout';
  return code === 'ECONNRESET' ? 'closed' : 'protocol';
}
