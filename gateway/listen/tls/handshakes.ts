/**
 * TLS handshakes on connections that are already counted, so that no client gets one beyond its share.
 *
 * The first byte is checked before the handshake, so that clients that speak plain HTTP get a readable reply.
 */
import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { SecuredConnections } from '#gateway/listen/entrance.ts';
import type { Millis } from '#shared/clock.ts';
import type { HandshakePace } from './handshake-pace.ts';
import type { KeyPair } from './key-pair.ts';

/** Timeout of a whole handshake, and of the wait for its first byte. */
const HANDSHAKE_MS: Millis = 10_000;
/** The record type of every ClientHello (RFC 8446 5.1). */
const HANDSHAKE_RECORD = 22;

/** `pace`: the client began too many handshakes. */
type HandshakeFailure = 'timeout' | 'protocol' | 'closed' | 'pace';

interface HandshakesOptions {
  readonly timeoutMs?: Millis;
  /** Limits the handshakes of one client; null for no limit. */
  readonly pace?: HandshakePace | null;
  /** Called when a client must wait, or its connection is closed, because it began too many handshakes. */
  readonly onTooFast?: () => void;
}

export class Handshakes implements SecuredConnections {
  readonly #server: Server;
  /** Callbacks by the addresses of both ends, because node:tls does not tell which socket it secured. */
  readonly #pending = new Map<string, (secured: TLSSocket) => void>();
  readonly #timeoutMs: Millis;
  readonly #pace: HandshakePace | null;
  readonly #onTooFast: () => void;
  readonly failures: Record<HandshakeFailure, number> = { timeout: 0, protocol: 0, closed: 0, pace: 0 };
  /** Number of handshakes that had to wait. */
  delayed = 0;
  #pair: KeyPair;

  constructor(
    pair: KeyPair,
    { timeoutMs = HANDSHAKE_MS, pace = null, onTooFast = () => undefined }: HandshakesOptions = {},
  ) {
    this.#pair = pair;
    this.#timeoutMs = timeoutMs;
    this.#pace = pace;
    this.#onTooFast = onTooFast;
    this.#server = createServer({
      ...contextOf(pair),
      ALPNProtocols: ['http/1.1'],
      handshakeTimeout: timeoutMs,
    });
    this.#server.on('secureConnection', (secured) => this.#onSecure(secured));
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, secured) => {
      this.failures[failureOf(error)]++;
      secured.destroy();
    });
  }

  get pair(): KeyPair {
    return this.#pair;
  }

  /** Uses another certificate for new connections. */
  use(pair: KeyPair): void {
    this.#pair = pair;
    this.#server.setSecureContext(contextOf(pair));
  }

  begin(
    socket: Socket,
    client: string | null,
    onSecure: (secured: TLSSocket) => void,
    onPlain: () => void,
  ): void {
    readFirstBytes(socket, this.#timeoutMs, firstRecord, (found) => {
      switch (found) {
        case 'good':
          this.#secureInTurn(socket, client, onSecure);
          return;
        case 'bad':
          this.failures.protocol++;
          onPlain();
          return;
        case 'late':
          this.failures.timeout++;
          socket.destroy();
          return;
        case 'gone':
          this.failures.closed++;
          socket.destroy();
          return;
        default:
          found satisfies never;
      }
    });
  }

  /** Delays a client that begins too many handshakes. */
  #secureInTurn(socket: Socket, client: string | null, onSecure: (secured: TLSSocket) => void): void {
    const waitMs = client === null || this.#pace === null ? 0 : this.#pace.begin(client, this.#timeoutMs);
    if (waitMs === 0) {
      this.#secure(socket, onSecure);
      return;
    }
    this.#onTooFast();
    if (waitMs === null) {
      this.failures.pace++;
      socket.destroy();
      return;
    }
    this.delayed++;
    const timer = setTimeout(() => this.#secure(socket, onSecure), waitMs);
    socket.once('close', () => clearTimeout(timer));
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
