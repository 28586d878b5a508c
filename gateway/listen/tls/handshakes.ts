/**
 * TLS on connections that are accepted and counted already, so that nobody gets a handshake beyond its share.
 *
 * The first byte is looked at before: who speaks plain HTTP here is told so, and costs no handshake.
 */
import { constants } from 'node:crypto';
import type { Socket } from 'node:net';
import { createServer, type Server, type TLSSocket, type TlsOptions } from 'node:tls';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Millis } from '#shared/clock.ts';
import type { HandshakePace } from './handshake-pace.ts';
import type { KeyPair } from './key-pair.ts';

/** From the first byte of a handshake to its last; and as long before it. */
const HANDSHAKE_MS: Millis = 10_000;
/** The record type of every ClientHello (RFC 8446 5.1). */
const HANDSHAKE_RECORD = 22;

/** A connection that is being secured. */
interface Pending {
  readonly onSecure: (secured: TLSSocket) => void;
}

/** Why a handshake failed; `pace`: its client began too many before it. */
export type HandshakeFailure = 'timeout' | 'protocol' | 'closed' | 'pace';

interface HandshakesOptions {
  readonly timeoutMs?: Millis;
  /** To agree on, the best one first. */
  readonly protocols?: readonly string[];
  /** null: as fast as anybody likes. */
  readonly pace?: HandshakePace | null;
  /** A client has to wait, or is closed, because of its pace. */
  readonly onTooFast?: () => void;
}

export class Handshakes {
  readonly #server: Server;
  /** By the socket below. */
  readonly #pending = new Map<Socket, Pending>();
  /** The same by their addresses, because node:tls does not say on which socket it works. */
  readonly #byAddress = new Map<string, Socket>();
  readonly #timeoutMs: Millis;
  readonly #pace: HandshakePace | null;
  readonly #onTooFast: () => void;
  readonly failures: Record<HandshakeFailure, number> = { timeout: 0, protocol: 0, closed: 0, pace: 0 };
  /** Handshakes that had to wait for their client's pace. */
  delayed = 0;
  #pair: KeyPair;

  constructor(
    pair: KeyPair,
    {
      timeoutMs = HANDSHAKE_MS,
      protocols = ['http/1.1'],
      pace = null,
      onTooFast = () => undefined,
    }: HandshakesOptions = {},
  ) {
    this.#pair = pair;
    this.#timeoutMs = timeoutMs;
    this.#pace = pace;
    this.#onTooFast = onTooFast;
    this.#server = createServer({
      ...contextOf(pair),
      ALPNProtocols: [...protocols],
      handshakeTimeout: timeoutMs,
    });
    this.#server.on('secureConnection', (secured) => this.#onSecure(secured));
    this.#server.on('tlsClientError', (error: NodeJS.ErrnoException, secured) => {
      this.failures[failureOf(error)]++;
      secured.destroy();
    });
  }

  /** The certificate in use. */
  get pair(): KeyPair {
    return this.#pair;
  }

  /** Connections that are secured keep what they have. */
  use(pair: KeyPair): void {
    this.#pair = pair;
    this.#server.setSecureContext(contextOf(pair));
  }

  /**
   * @param socket accepted, and not read yet; when the handshake fails it is closed
   * @param client whose pace it has to keep; null: nobody's
   * @param onSecure called at most once, with the socket above it
   * @param onPlain called instead where the client does not speak TLS
   */
  begin(
    socket: Socket,
    client: string | null,
    onSecure: (secured: TLSSocket) => void,
    onPlain: () => void,
  ): void {
    socket.on('error', () => socket.destroy());
    this.#pending.set(socket, { onSecure });
    socket.once('close', () => this.#pending.delete(socket));
    readFirstBytes(socket, this.#timeoutMs, firstRecord, (found) => {
      switch (found) {
        case 'good':
          this.#secureInTurn(socket, client);
          return;
        case 'bad':
          this.failures.protocol++;
          this.#pending.delete(socket);
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

  /** Cuts what is not secured yet. */
  cut(): void {
    for (const socket of this.#pending.keys()) socket.destroy();
  }

  /** Who comes too fast waits, unread, for its own earlier handshakes. */
  #secureInTurn(socket: Socket, client: string | null): void {
    const waitMs = client === null || this.#pace === null ? 0 : this.#pace.begin(client, this.#timeoutMs);
    if (waitMs === 0) {
      this.#secure(socket);
      return;
    }
    this.#onTooFast();
    if (waitMs === null) {
      this.failures.pace++;
      socket.destroy();
      return;
    }
    this.delayed++;
    const timer = setTimeout(() => this.#secure(socket), waitMs);
    socket.once('close', () => clearTimeout(timer));
  }

  #secure(socket: Socket): void {
    const address = addressOf(socket);
    this.#byAddress.set(address, socket);
    // Who has said its last word cannot finish a handshake. Afterwards it may still wait for its answer.
    socket.allowHalfOpen = false;
    socket.once('close', () => {
      if (this.#byAddress.get(address) === socket) this.#byAddress.delete(address);
    });
    this.#server.emit('connection', socket);
  }

  #onSecure(secured: TLSSocket): void {
    const address = addressOf(secured);
    const socket = this.#byAddress.get(address);
    const pending = socket === undefined ? undefined : this.#pending.get(socket);
    // Reset at this very moment: then it has no address any more.
    if (socket === undefined || pending === undefined) {
      secured.destroy();
      return;
    }
    this.#byAddress.delete(address);
    this.#pending.delete(socket);
    secured.allowHalfOpen = true;
    pending.onSecure(secured);
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
