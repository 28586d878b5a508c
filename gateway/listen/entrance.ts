/** The steps of a connection before its first request: PROXY header, bounds, TLS handshake. */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { Penalties } from '#gateway/bounds/penalties.ts';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { originAmong } from '#gateway/http/page-origin.ts';
import { originOf, type RequestOrigin } from '#gateway/http/request-origin.ts';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Pipelining } from '#gateway/listen/connection/pipelining.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import { type OwnReply, rawReply } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import type { Refusals } from '#gateway/request/refuse.ts';
import type { Millis } from '#shared/clock.ts';

/** Connections that begin with a PROXY header. */
export interface IntroducedConnections {
  /** Whether this peer may send a PROXY header. If not, the caller closes the connection. */
  accepts(socket: Socket): boolean;
  /**
   * Without a header in time the socket is closed.
   * @param onIntroduced gets the client's address; null if the header has none, so the peer is the client
   */
  begin(socket: Socket, onIntroduced: (address: string | null) => void): void;
  /** Cuts connections whose header has not arrived yet. */
  cut(): void;
}

/** Connections that begin with a TLS handshake. */
export interface SecuredConnections {
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
  ): void;
  /** Cuts connections whose handshake is not complete. */
  cut(): void;
}

/** Optional parts add these objects to the way in. */
export interface EntranceSlots {
  /** null if connections do not begin with a PROXY header */
  readonly introductions: IntroducedConnections | null;
  /** null without TLS */
  readonly handshakes: SecuredConnections | null;
}

interface EntranceOptions extends EntranceSlots {
  readonly enforcement: Enforcement;
  readonly refusals: Refusals;
  readonly clients: Clients;
  readonly connections: Bound;
  readonly pipelining: Pipelining;
  /** Penalties for clients that send bodies in too small pieces. */
  readonly penalties: Penalties;
  /** Called when a connection is ready for requests. Its socket emits 'close'. */
  readonly onOpen: (connection: ClientConnection) => void;
}

/** Maximum number of refused connections that are being answered. Others are closed without a reply. */
const TOLD_MAX = 64;
/** How long a refused connection may take until its request arrives. */
const HEAD_MS: Millis = 1000;
/** With TLS a reply costs a handshake, so at most TOLD_MAX refused connections get a reply in this time. */
const TOLD_TLS_MS: Millis = 1000;

const NOT_ENCRYPTED = unreadReply(REASONS.notEncrypted);

export class Entrance {
  readonly #options: EntranceOptions;
  /** Refused connections that get a reply. */
  readonly #refused = new Set<Socket>();

  constructor(options: EntranceOptions) {
    this.#options = options;
  }

  accept(socket: Socket): void {
    const { introductions, connections } = this.#options;
    if (introductions === null) {
      this.#admit(socket, null);
      return;
    }
    if (!introductions.accepts(socket)) {
      socket.destroy();
      return;
    }
    // Before the header names the client, the connection counts only for the total.
    const refusal = connections.take(null);
    if (refusal !== null) {
      this.#refuseUnread(socket, introductions, refusal);
      return;
    }
    let isHeld = true;
    const giveBack = (): void => {
      if (isHeld) connections.give(null);
      isHeld = false;
    };
    socket.once('close', giveBack);
    introductions.begin(socket, (address) => {
      socket.off('close', giveBack);
      giveBack();
      this.#admit(socket, address);
    });
  }

  /** @param introducedAs the address in the PROXY header; null without one */
  #originOf({ remoteAddress }: Socket, introducedAs: string | null): RequestOrigin {
    const { enforcement, handshakes } = this.#options;
    const peer = { remoteAddress, encrypted: handshakes !== null };
    return originOf(peer, enforcement.options.trust, introducedAs);
  }

  /** Refuses a connection whose PROXY header has not arrived yet. */
  #refuseUnread(socket: Socket, introductions: IntroducedConnections, refusal: Refusal): void {
    const { connections, handshakes } = this.#options;
    const refuse = (address: string | null): void =>
      this.#refuse(socket, this.#originOf(socket, address), connections, refusal, null);
    if (handshakes === null || this.#refused.size >= TOLD_MAX) {
      refuse(null);
      return;
    }
    // With TLS, the handshake comes after the PROXY header.
    this.#refused.add(socket);
    socket.once('close', () => this.#refused.delete(socket));
    introductions.begin(socket, refuse);
  }

  #admit(socket: Socket, introducedAs: string | null): void {
    const { handshakes, pipelining } = this.#options;
    const origin = this.#originOf(socket, introducedAs);
    const client = this.#count(socket, origin);
    if (client === undefined) return;
    if (handshakes === null) {
      this.#open(new ClientConnection(socket, origin, client));
      return;
    }
    const onFailed = (): void => this.#release(client);
    socket.once('close', onFailed);
    this.#secure(handshakes, socket, client, (secured) => {
      socket.off('close', onFailed);
      this.#open(new ClientConnection(secured, origin, client));
      // Check again, because the client may have exceeded its share during the handshake.
      if (pipelining.refusalFor(client) !== null) secured.destroy();
    });
  }

  #secure(
    handshakes: SecuredConnections,
    socket: Socket,
    client: Client | null,
    onSecure: (secured: TLSSocket) => void,
  ): void {
    handshakes.begin(socket, client?.address ?? null, onSecure, () =>
      closeUnread(socket, this.#raw(NOT_ENCRYPTED, null)),
    );
  }

  /** @returns the client that holds the connection; null if only the total counts; undefined if it was refused */
  #count(socket: Socket, origin: RequestOrigin): Client | null | undefined {
    const { enforcement, clients, connections, pipelining, penalties } = this.#options;
    // A trusted proxy's connections carry the requests of many clients.
    const client = origin.trusted ? null : clients.enter(enforcement.callerOf(origin, '').address.counted());
    if (client !== null && penalties.has(client)) {
      clients.leave(client);
      socket.destroy();
      return undefined;
    }
    const penalty = pipelining.refusalFor(client);
    const refusal = penalty ?? connections.take(client);
    if (refusal === null) return client;
    this.#refuse(socket, origin, penalty === null ? connections : pipelining.bound, refusal, client);
    if (client !== null) clients.leave(client);
    return undefined;
  }

  /** Cuts connections without a request. */
  cutUnsecured(): void {
    this.#options.introductions?.cut();
    this.#options.handshakes?.cut();
  }

  /** Cuts connections that were refused, or whose handshake is not complete. */
  cut(): void {
    for (const socket of this.#refused) socket.destroy();
    this.cutUnsecured();
  }

  #open(connection: ClientConnection): void {
    connection.socket.once('close', () => this.#release(connection.client));
    this.#options.onOpen(connection);
  }

  #release(client: Client | null): void {
    const { clients, connections } = this.#options;
    connections.give(client);
    if (client !== null) clients.leave(client);
  }

  /** @param pageOrigin null if it is unknown */
  #raw(reply: OwnReply, pageOrigin: string | null): Buffer {
    const { table, options } = this.#options.enforcement;
    return rawReply({ ...reply, cors: table.cors.forOrigin(pageOrigin) }, options.wallClock());
  }

  /** Answers and closes. If the reply depends on the origin of a page, it first waits a moment for the request. */
  #tell(socket: Socket, reply: OwnReply): void {
    let pageOrigin: string | null = null;
    const end = (): void => {
      closeUnread(socket, this.#raw(reply, pageOrigin));
    };
    if (!this.#options.enforcement.table.cors.varies) {
      end();
      return;
    }
    const look = (bytes: Buffer): number => {
      pageOrigin = originAmong(bytes);
      return 0;
    };
    readFirstBytes(socket, HEAD_MS, look, end);
  }

  #refuse(
    socket: Socket,
    origin: RequestOrigin,
    bound: Bound,
    refusal: Refusal,
    client: Client | null,
  ): void {
    const { handshakes } = this.#options;
    bound.refused(refusal);
    socket.on('error', () => socket.destroy());
    if (this.#refused.size >= TOLD_MAX) {
      socket.destroy();
      return;
    }
    this.#refused.add(socket);
    const forget = (): void => void this.#refused.delete(socket);
    const reply = this.#options.refusals.connection(bound, refusal, client, origin);
    if (handshakes === null) {
      socket.once('close', forget);
      this.#tell(socket, reply);
      return;
    }
    socket.once('close', () => setTimeout(forget, TOLD_TLS_MS).unref());
    this.#secure(handshakes, socket, client, (secured) => {
      secured.on('error', () => secured.destroy());
      this.#tell(secured, reply);
    });
  }
}
