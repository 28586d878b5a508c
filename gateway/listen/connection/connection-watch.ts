/**
 * Cuts slow clients. Once a second it checks all connections for slow bodies and unread replies, so that no request
 * needs a timer of its own.
 */
import type { Socket } from 'node:net';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { ClientResponse } from '#gateway/http/client-exchange.ts';
import type { Upstream } from '#gateway/proxy/upstream.ts';
import type { Clock, Millis } from '#shared/clock.ts';

const CHECK_MS: Millis = 1000;
/** Number of checks without progress after which a body is cut. */
const SILENCE_CHECKS = 30;
/** Bytes that count as progress within these checks: about 500 bytes a second, less than the slowest mobile network. */
const SILENCE_BYTES = 16_384;
/** While other uploads wait for room, the slowest one below this average of bytes in each check is cut. */
const PRESSED_BYTES = 20_480;
/** The average follows the last checks. */
const CHECKS_AVERAGED = 5;

interface SlowBody {
  response: ClientResponse;
  /** Numbers of bytes read, and of reply bytes that the kernel accepted, at the last progress. */
  bytesRead: number;
  bytesSent: number;
  /** Number of checks since then. */
  checks: number;
  /** Number of bytes read at the last check. */
  seenBytes: number;
  /** Average of bytes in each check. It begins high enough that a new upload has a few checks. */
  speed: number;
}

interface UnreadReply {
  /** Number of reply bytes that the kernel has accepted. */
  bytesSent: number;
  since: Millis;
  /** The client whose bound counts the reply; null while it is not counted. */
  client: Client | null;
}

interface ConnectionWatchOptions {
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly clients: Clients;
  readonly upstream: Upstream;
  readonly clock: Clock;
  /** Refuses a body that does not arrive, and closes its connection. */
  readonly refuseSilent: (connection: ClientConnection) => void;
  readonly checkMs?: Millis | undefined;
}

export class ConnectionWatch {
  readonly #options: ConnectionWatchOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #checkMs: Millis;
  readonly #bodies = new Map<ClientConnection, SlowBody>();
  readonly #unread = new Map<ClientConnection, UnreadReply>();
  /** Number of connections that were cut because the client did not read or send. */
  unreadCut = 0;
  silentCut = 0;

  constructor(options: ConnectionWatchOptions) {
    this.#options = options;
    this.#checkMs = options.checkMs ?? CHECK_MS;
    this.#timer = setInterval(() => this.#check(), this.#checkMs);
    this.#timer.unref();
  }

  stop(): void {
    clearInterval(this.#timer);
  }

  /** Called when the connection is closed. */
  forget(connection: ClientConnection): void {
    this.#bodies.delete(connection);
    this.#noLongerUnread(connection);
  }

  #check(): void {
    let slowest: { connection: ClientConnection; speed: number } | null = null;
    const now = this.#options.clock();
    for (const connection of this.#options.connections.values()) {
      connection.reader?.check(now);
      const response = connection.pending;
      if (response === null) {
        this.forget(connection);
        continue;
      }
      const speed = this.#checkBody(connection, response);
      if (speed < (slowest?.speed ?? PRESSED_BYTES)) slowest = { connection, speed };
      this.#checkReply(connection, response);
    }
    if (slowest === null || !this.#options.upstream.uploads.isShort) return;
    this.#options.upstream.bounds.uploads.refused('total');
    this.#cutSilent(slowest.connection);
  }

  /** @returns the speed of an upload whose client sends; infinite for all other requests */
  #checkBody(connection: ClientConnection, response: ClientResponse): number {
    const { body } = response.req;
    const isReplying = response.headersSent;
    // While much of the body waits, the gateway does not read. After the end of the reply, the rest is discarded.
    const isAwaited =
      body !== null &&
      !body.complete &&
      !body.isFull &&
      (!isReplying || response.exchange?.isClosed === false);
    if (!isAwaited) {
      this.#bodies.delete(connection);
      return Number.POSITIVE_INFINITY;
    }
    const { bytesRead } = connection.socket;
    const bytesSent = sentBytes(connection);
    const slow = this.#bodies.get(connection);
    if (slow === undefined || slow.response !== response) {
      const speed = 2 * PRESSED_BYTES;
      this.#bodies.set(connection, {
        response,
        bytesRead,
        bytesSent,
        checks: 0,
        seenBytes: bytesRead,
        speed,
      });
      return Number.POSITIVE_INFINITY;
    }
    slow.speed += (bytesRead - slow.seenBytes - slow.speed) / CHECKS_AVERAGED;
    slow.seenBytes = bytesRead;
    // After the reply has begun, client and upstream may alternate, so its bytes are progress too.
    if (bytesRead - slow.bytesRead >= SILENCE_BYTES || (isReplying && bytesSent > slow.bytesSent)) {
      slow.bytesRead = bytesRead;
      slow.bytesSent = bytesSent;
      slow.checks = 0;
    } else if (++slow.checks >= SILENCE_CHECKS) {
      this.#cutSilent(connection);
      return Number.POSITIVE_INFINITY;
    }
    const isUploading = !isReplying && response.exchange?.call?.isUploading === true;
    return isUploading ? slow.speed : Number.POSITIVE_INFINITY;
  }

  #cutSilent(connection: ClientConnection): void {
    this.silentCut++;
    this.#bodies.delete(connection);
    this.#options.refuseSilent(connection);
  }

  #checkReply(connection: ClientConnection, response: ClientResponse): void {
    const { clock } = this.#options;
    const { socket } = connection;
    const isWaiting = response.headersSent && (socket.writableLength > 0 || response.writableLength > 0);
    const bytesSent = sentBytes(connection);
    let unread = this.#unread.get(connection);
    if (!isWaiting || (unread !== undefined && unread.bytesSent !== bytesSent)) {
      this.#noLongerUnread(connection);
      unread = undefined;
    }
    if (isWaiting && unread === undefined) {
      unread = { bytesSent, since: clock(), client: null };
      this.#unread.set(connection, unread);
    }
    const unreadMs = unread === undefined ? 0 : clock() - unread.since;
    if (unread !== undefined && !this.#mayStayUnread(connection, response, unread, unreadMs)) {
      this.unreadCut++;
      socket.destroy();
      return;
    }
    response.exchange?.call?.onTick(unreadMs);
  }

  #mayStayUnread(
    connection: ClientConnection,
    response: ClientResponse,
    unread: UnreadReply,
    unreadMs: Millis,
  ): boolean {
    const { upstream, clients } = this.#options;
    if (unreadMs >= upstream.options.unreadTimeoutMs) return false;
    // Do not count replies that are read within one check.
    if (unread.client !== null || unreadMs < this.#checkMs) return true;
    const known = response.exchange?.client ?? connection.client;
    if (known === null) return true;
    const client = clients.hold(known);
    const refusal = upstream.bounds.unread_replies.take(client);
    if (refusal !== null) {
      clients.leave(client);
      upstream.bounds.unread_replies.refused(refusal);
      return false;
    }
    unread.client = client;
    return true;
  }

  #noLongerUnread(connection: ClientConnection): void {
    const client = this.#unread.get(connection)?.client ?? null;
    this.#unread.delete(connection);
    if (client === null) return;
    this.#options.upstream.bounds.unread_replies.give(client);
    this.#options.clients.leave(client);
  }
}

/** Returns the number of bytes that the kernel has accepted. */
function sentBytes({ socket }: ClientConnection): number {
  return socket.bytesWritten - socket.writableLength;
}
