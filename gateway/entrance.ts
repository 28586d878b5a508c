/** From an accepted socket to a connection on which requests come: introduced, counted, secured. */
import type { Socket } from 'node:net';
import { clientAddress } from '#shared/client-address.ts';
import type { Millis } from '#shared/clock.ts';
import type { Bound, Refusal } from './bounds/bounds.ts';
import type { Client, Clients } from './bounds/clients.ts';
import { boundRefusal } from './decisions/beside-refusals.ts';
import type { Decisions, RefusedRequest } from './decisions/decisions.ts';
import type { Enforcement } from './enforce.ts';
import { boundCounter } from './policy/beside-policies.ts';
import { ClientConnection } from './proxy/client-connection.ts';
import { lingeringClose } from './proxy/lingering-close.ts';
import type { Pipelining } from './proxy/pipelining.ts';
import type { Introductions } from './proxy-protocol/introductions.ts';
import { boundReply } from './reply/failure.ts';
import { ownReply, rawReply } from './reply/own-reply.ts';
import type { Handshakes } from './tls/handshakes.ts';

export interface EntranceOptions {
  readonly enforcement: Enforcement;
  readonly clients: Clients;
  readonly decisions: Decisions;
  readonly connections: Bound;
  readonly pipelining: Pipelining;
  /** null: connections are those of their peers. */
  readonly introductions: Introductions | null;
  /** null: connections are not encrypted. */
  readonly handshakes: Handshakes | null;
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

  constructor(options: EntranceOptions) {
    this.#options = options;
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
      connections.refused(refusal);
      socket.destroy();
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

  #admit(socket: Socket): void {
    const { enforcement, clients, connections, handshakes, pipelining } = this.#options;
    const { trust } = enforcement.options;
    const origin = enforcement.peers.originOf(socket);
    // A trusted proxy's connections carry everybody's requests, so no share of one client holds for them.
    const client = origin.trusted ? null : clients.enter(clientAddress(origin.peer, '', trust));
    const penalty = pipelining.refusalFor(client);
    const refusal = penalty ?? connections.take(client);
    if (refusal !== null) {
      this.#refuse(socket, penalty === null ? connections : pipelining.bound, refusal, client);
      if (client !== null) clients.leave(client);
      return;
    }
    if (handshakes === null) {
      this.#open(new ClientConnection(socket, origin, client));
      return;
    }
    const onFailed = (): void => this.#release(client);
    socket.once('close', onFailed);
    handshakes.begin(
      socket,
      (secured) => {
        socket.off('close', onFailed);
        if (origin.isIntroduced) enforcement.peers.introduce(secured, origin.peer);
        this.#open(new ClientConnection(secured, enforcement.peers.originOf(secured), client));
        // Went beyond its share elsewhere in the meantime.
        if (pipelining.refusalFor(client) !== null) secured.destroy();
      },
      () => lingeringClose(socket, NOT_ENCRYPTED),
    );
  }

  /** Cuts connections on which no request has come yet. */
  cutUnsecured(): void {
    this.#options.introductions?.cut();
    this.#options.handshakes?.cut();
  }

  /** Cuts connections that are refused, or not secured yet. */
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

  #refuse(socket: Socket, bound: Bound, refusal: Refusal, client: Client | null): void {
    bound.refused(refusal);
    socket.on('error', () => socket.destroy());
    if (this.#refused.size >= TOLD_MAX) {
      socket.destroy();
      return;
    }
    const { decisions, enforcement, handshakes } = this.#options;
    this.#refused.add(socket);
    const forget = (): void => void this.#refused.delete(socket);
    const counter = boundCounter(bound.name, refusal);
    const identity = enforcement.connectionIdentity(socket);
    const decision = decisions.add(boundRefusal(bound, refusal, client, counter, identity), {
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
