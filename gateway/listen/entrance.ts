/** From an accepted socket to a connection on which requests come: introduced, counted, secured. */
import type { Socket } from 'node:net';
import type { TLSSocket } from 'node:tls';
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { Penalties } from '#gateway/bounds/penalties.ts';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { lingeringClose } from '#gateway/http/lingering-close.ts';
import type { RequestOrigin } from '#gateway/http/request-headers.ts';
import type { Pipelining } from '#gateway/listen/connection/pipelining.ts';
import type { FrameShare } from '#gateway/listen/http2/frame-share.ts';
import { Http2Sessions } from '#gateway/listen/http2/sessions.ts';
import type { Introductions } from '#gateway/listen/proxy-protocol/introductions.ts';
import type { Handshakes } from '#gateway/listen/tls/handshakes.ts';
import type { Decisions, RefusedRequest } from '#gateway/operate/decisions/decisions.ts';
import { boundRefusal } from '#gateway/operate/decisions/refusal.ts';
import { ownReply, rawReply } from '#gateway/reply/own-reply.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import { boundReply } from '#gateway/request/failure.ts';
import { clientAddress } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';

export interface EntranceOptions {
  readonly enforcement: Enforcement;
  readonly clients: Clients;
  readonly decisions: Decisions;
  readonly connections: Bound;
  readonly pipelining: Pipelining;
  /** Penalties for clients that send bodies in too small pieces. */
  readonly penalties: Penalties;
  /** null: connections are those of their peers. */
  readonly introductions: Introductions | null;
  /** null: connections are not encrypted. */
  readonly handshakes: Handshakes | null;
  /** null: HTTP/2 is not offered. It needs connections that are encrypted. */
  readonly frames: FrameShare | null;
  /** The body of a stream of HTTP/2 came in too small pieces. */
  readonly onSmallPieces: () => void;
  /** Requests may come on it. Told when it closes by its socket. */
  readonly onOpen: (connection: ClientConnection) => void;
}

/** Refused connections that are told why; those beyond are closed without a word. */
const TOLD_MAX = 64;
/** With TLS being told costs a handshake, so no more than TOLD_MAX are told in this time. */
const TOLD_TLS_MS: Millis = 1000;

const NOT_ENCRYPTED = rawReply(
  ownReply('gateway_bad_request', 'this port is for HTTPS: begin the address with https://', {
    cors: true,
    close: true,
  }),
);

export class Entrance {
  readonly #options: EntranceOptions;
  /** Connections that were refused, and are told so. */
  readonly #refused = new Set<Socket>();
  readonly #sessions: Http2Sessions | null;

  constructor(options: EntranceOptions) {
    this.#options = options;
    const { frames } = options;
    this.#sessions =
      frames === null
        ? null
        : new Http2Sessions({
            frames,
            onStream: (socket, origin) => this.#admitStream(socket, origin),
            onSmallPieces: options.onSmallPieces,
          });
  }

  accept(socket: Socket): void {
    const { introductions, enforcement, connections } = this.#options;
    if (introductions === null) {
      this.#admit(socket);
      return;
    }
    if (!introductions.accepts(socket)) {
      socket.destroy();
      return;
    }
    // The proxy's until it says whose it is.
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
      if (address !== null) enforcement.peers.introduce(socket, address);
      this.#admit(socket);
    });
  }

  /** Refuses a connection before the header that says whose it is. */
  #refuseUnread(socket: Socket, introductions: Introductions, refusal: Refusal): void {
    const { connections, handshakes } = this.#options;
    const refuse = (): void => this.#refuse(socket, connections, refusal, null, handshakes);
    if (handshakes === null || this.#refused.size >= TOLD_MAX) {
      refuse();
      return;
    }
    // The handshake comes behind the header.
    this.#refused.add(socket);
    socket.once('close', () => this.#refused.delete(socket));
    introductions.begin(socket, refuse);
  }

  #admit(socket: Socket): void {
    const { enforcement, handshakes } = this.#options;
    const origin = enforcement.peers.originOf(socket);
    const client = this.#count(socket, origin, handshakes);
    if (client === undefined) return;
    if (handshakes === null) {
      this.#open(new ClientConnection(socket, origin, client));
      return;
    }
    const onFailed = (): void => this.#release(client);
    socket.once('close', onFailed);
    handshakes.begin(
      socket,
      client?.address ?? null,
      (secured) => {
        socket.off('close', onFailed);
        this.#openSecured(secured, origin, client);
      },
      () => lingeringClose(socket, NOT_ENCRYPTED),
    );
  }

  #openSecured(secured: TLSSocket, { isIntroduced, peer }: RequestOrigin, client: Client | null): void {
    const { enforcement, pipelining } = this.#options;
    const { peers } = enforcement;
    if (isIntroduced) peers.introduce(secured, peer);
    const origin = peers.originOf(secured);
    if (this.#sessions !== null && secured.alpnProtocol === 'h2') {
      secured.once('close', () => this.#release(client));
      this.#sessions.begin(secured, origin, client);
      return;
    }
    this.#open(new ClientConnection(secured, origin, client));
    // Went beyond its share elsewhere in the meantime.
    if (pipelining.refusalFor(client) !== null) secured.destroy();
  }

  /** A stream counts as a connection beside the one that it is on. */
  #admitStream(socket: Socket, { isIntroduced, peer }: RequestOrigin): void {
    const { peers } = this.#options.enforcement;
    if (isIntroduced) peers.introduce(socket, peer);
    const origin = peers.originOf(socket);
    const client = this.#count(socket, origin, null);
    if (client !== undefined) this.#open(new ClientConnection(socket, origin, client));
  }

  /**
   * @param handshakes with which it would be told that it is refused; null: as it is
   * @returns whose it is; null: nobody's in particular; undefined: it has been refused
   */
  #count(socket: Socket, origin: RequestOrigin, handshakes: Handshakes | null): Client | null | undefined {
    const { enforcement, clients, connections, pipelining, penalties, frames } = this.#options;
    // A trusted proxy's connections carry everybody's requests, so no share of one client holds for them.
    const client = origin.trusted
      ? null
      : clients.enter(clientAddress(origin.peer, '', enforcement.options.trust));
    if (client !== null && (frames?.isPenalized(client.address) === true || penalties.has(client))) {
      clients.leave(client);
      socket.destroy();
      return undefined;
    }
    const penalty = pipelining.refusalFor(client);
    const refusal = penalty ?? connections.take(client);
    if (refusal === null) return client;
    this.#refuse(socket, penalty === null ? connections : pipelining.bound, refusal, client, handshakes);
    if (client !== null) clients.leave(client);
    return undefined;
  }

  /** Lets streams end that are open, and takes no further ones. */
  drain(): void {
    this.#sessions?.drain();
  }

  /** Cuts connections on which no request has come yet. */
  cutUnsecured(): void {
    this.#options.introductions?.cut();
    this.#options.handshakes?.cut();
  }

  /** Cuts connections that are refused, or not secured yet. */
  cut(): void {
    for (const socket of this.#refused) socket.destroy();
    this.#sessions?.cut();
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

  #refuse(
    socket: Socket,
    bound: Bound,
    refusal: Refusal,
    client: Client | null,
    handshakes: Handshakes | null,
  ): void {
    bound.refused(refusal);
    socket.on('error', () => socket.destroy());
    if (this.#refused.size >= TOLD_MAX) {
      socket.destroy();
      return;
    }
    const { decisions, enforcement } = this.#options;
    this.#refused.add(socket);
    const forget = (): void => void this.#refused.delete(socket);
    const identity = enforcement.connectionIdentity(socket);
    const decision = decisions.add(boundRefusal(bound, refusal, client, identity), {
      describe: () => unreadRequest(enforcement),
    });
    const reply = rawReply(
      boundReply(bound.name, refusal, { cors: true, close: true, headers: [], decision }),
    );
    if (handshakes === null) {
      socket.once('close', forget);
      lingeringClose(socket, reply);
      return;
    }
    socket.once('close', () => setTimeout(forget, TOLD_TLS_MS).unref());
    handshakes.begin(
      socket,
      client?.address ?? null,
      (secured) => {
        secured.on('error', () => secured.destroy());
        lingeringClose(secured, reply);
      },
      () => lingeringClose(socket, NOT_ENCRYPTED),
    );
  }
}

/** Of a connection that is refused before anything is read from it. */
function unreadRequest({ policies: { file, version } }: Enforcement): RefusedRequest {
  return {
    method: '',
    target: '',
    addressFrom: 'socket',
    file,
    policyVersion: version,
  };
}
