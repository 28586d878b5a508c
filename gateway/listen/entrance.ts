/** The steps of a connection before its first request: PROXY header, bounds, TLS handshake. */
import type { Socket } from 'node:net';
import type { Bound, Refusal } from '#gateway/bounds/bounds.ts';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { ClientConnection } from '#gateway/http/client-connection.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { originAmong } from '#gateway/http/page-origin.ts';
import { RequestOrigin } from '#gateway/http/request-origin.ts';
import { readFirstBytes } from '#gateway/listen/connection/first-bytes.ts';
import type { Floods } from '#gateway/listen/connection/floods.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import { type OwnReply, rawReply } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Enforcement } from '#gateway/request/enforcement.ts';
import type { Refusals } from '#gateway/request/refuse.ts';
import type { Millis } from '#shared/clock.ts';
import type { Introductions } from './proxy-protocol/introductions.ts';
import type { Handshakes } from './tls/handshakes.ts';

/** Optional parts add these objects to the way in. */
export interface EntranceSlots {
  /** null if connections do not begin with a PROXY header */
  readonly introductions: Introductions | null;
  /** null without TLS */
  readonly handshakes: Handshakes | null;
}

interface EntranceOptions extends EntranceSlots {
  readonly enforcement: Enforcement;
  readonly refusals: Refusals;
  readonly clients: Clients;
  readonly connections: Bound;
  readonly floods: Floods;
  /** Called when a connection is ready for requests. Its socket emits 'close'. */
  readonly onOpen: (connection: ClientConnection) => void;
}

/** Maximum number of refused connections that are being answered. Others are closed. */
const TOLD_MAX = 64;
/** How long a refused connection may take until its request arrives. */
const HEAD_MS: Millis = 1000;
/** With TLS a reply costs a handshake, so at most TOLD_MAX refused connections get a reply in this time. */
const TOLD_TLS_MS: Millis = 1000;

const NOT_ENCRYPTED = unreadReply(REASONS.notEncrypted);

export class Entrance {
  readonly #options: EntranceOptions;
  /** Connections that are not ready for requests, or were refused. */
  readonly #waiting = new Set<Socket>();
  /** Refused connections that get a reply. */
  readonly #told = new Set<Socket>();

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
    if (refusal !== null && !this.#mayTell(socket)) {
      connections.refused(refusal);
      return;
    }
    const giveBack = (): void => {
      if (refusal === null) connections.give(null);
    };
    this.#wait(socket);
    socket.once('close', giveBack);
    introductions.begin(socket, (address) => {
      socket.off('close', giveBack);
      giveBack();
      if (refusal === null) this.#admit(socket, address);
      else this.#refuse(socket, this.#originOf(socket, address), refusal, null);
    });
  }

  /** Cuts connections that are not ready for requests. */
  cut(): void {
    for (const socket of this.#waiting) socket.destroy();
  }

  #wait(socket: Socket): void {
    this.#waiting.add(socket);
    socket.on('error', () => socket.destroy());
    socket.once('close', () => this.#waiting.delete(socket));
  }

  /** @param introducedAs the address in the PROXY header; null without one */
  #originOf({ remoteAddress }: Socket, introducedAs: string | null): RequestOrigin {
    const { enforcement, handshakes } = this.#options;
    const peer = { remoteAddress, encrypted: handshakes !== null };
    return new RequestOrigin(peer, enforcement.options.trust, introducedAs);
  }

  #admit(socket: Socket, introducedAs: string | null): void {
    const { enforcement, handshakes, clients, connections, floods, onOpen } = this.#options;
    const origin = this.#originOf(socket, introducedAs);
    // A trusted proxy's connections carry the requests of many clients.
    const client = origin.trusted ? null : clients.enter(enforcement.callerOf(origin, '').address.counted());
    const leave = (): void => {
      if (client !== null) clients.leave(client);
    };
    if (floods.has(client)) {
      socket.destroy();
      leave();
      return;
    }
    const refusal = connections.take(client);
    if (refusal !== null) {
      this.#refuse(socket, origin, refusal, client);
      leave();
      return;
    }
    socket.once('close', () => {
      connections.give(client);
      leave();
    });
    if (handshakes !== null) this.#wait(socket);
    this.#secure(socket, client, (secured) => {
      this.#waiting.delete(socket);
      // The client may have begun a flood during the handshake.
      if (floods.has(client)) secured.destroy();
      else onOpen(new ClientConnection(secured, origin, client));
    });
  }

  /** @param onSecure gets the socket itself if there is no TLS */
  #secure(socket: Socket, client: Client | null, onSecure: (secured: Socket) => void): void {
    const { handshakes } = this.#options;
    const onPlain = (): void => this.#tell(socket, NOT_ENCRYPTED);
    if (handshakes === null) onSecure(socket);
    else handshakes.begin(socket, client?.address ?? null, onSecure, onPlain);
  }

  /** Answers and closes. If the reply depends on the origin of a page, it first waits a moment for the request. */
  #tell(socket: Socket, reply: OwnReply): void {
    const { cors } = this.#options.enforcement.table;
    let pageOrigin: string | null = null;
    const end = (): void => {
      const text = rawReply(
        { ...reply, cors: cors.forOrigin(pageOrigin) },
        this.#options.enforcement.options.wallClock(),
      );
      closeUnread(socket, text);
    };
    if (!cors.varies) {
      end();
      return;
    }
    const look = (bytes: Buffer): number => {
      pageOrigin = originAmong(bytes);
      return 0;
    };
    readFirstBytes(socket, HEAD_MS, look, end);
  }

  /** @returns false if too many are told already; then the connection is closed */
  #mayTell(socket: Socket): boolean {
    if (this.#told.has(socket)) return true;
    if (this.#told.size >= TOLD_MAX) {
      socket.destroy();
      return false;
    }
    this.#told.add(socket);
    const forgetMs = this.#options.handshakes === null ? 0 : TOLD_TLS_MS;
    socket.once('close', () => setTimeout(() => this.#told.delete(socket), forgetMs).unref());
    return true;
  }

  #refuse(socket: Socket, origin: RequestOrigin, refusal: Refusal, client: Client | null): void {
    const { connections, refusals } = this.#options;
    connections.refused(refusal);
    if (!this.#mayTell(socket)) return;
    const reply = refusals.connection(connections, refusal, client, origin);
    this.#wait(socket);
    this.#secure(socket, client, (secured) => {
      secured.on('error', () => secured.destroy());
      this.#tell(secured, reply);
    });
  }
}
