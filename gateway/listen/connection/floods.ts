/**
 * Clients that flood a connection, with pipelined requests or with a body in too small pieces. node:http parses all
 * received bytes before it calls back: 64 KiB hold more than 1,000 requests, or 10,000 pieces of a body, which takes 10 ms.
 * The client could send the next 64 KiB at once on another connection, so new ones are closed for a moment.
 */
import type { Socket } from 'node:net';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { PIECE_BYTES_MIN, type PieceListener, type RequestBody } from '#gateway/http/request-body.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import type { OwnReply } from '#gateway/reply/own-reply.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Millis } from '#shared/clock.ts';

const PENALTY_MS: Millis = 1000;

const SMALL_PIECES = unreadReply({
  code: REASONS.smallPieces.code,
  text: REASONS.smallPieces.text(PIECE_BYTES_MIN),
});

interface FloodsOptions {
  readonly clients: Clients;
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  /** Replies if no reply has begun, and closes the connection. */
  readonly refuse: (socket: Socket, reply: OwnReply) => void;
  /** Default: PENALTY_MS. Tests set another time. */
  readonly penaltyMs?: Millis | undefined;
}

export class Floods implements PieceListener {
  /** Number of bodies that were cut. */
  cut = 0;
  readonly #options: FloodsOptions;
  readonly #penalized = new Set<Client>();

  constructor(options: FloodsOptions) {
    this.#options = options;
  }

  /** Whether the new connections of this client are closed. */
  has(client: Client | null): boolean {
    return client !== null && this.#penalized.has(client);
  }

  /** Starts the penalty, and closes the connections of the client that may be part of the flood. */
  add(client: Client): void {
    if (this.#penalized.has(client)) return;
    const { clients, connections, penaltyMs = PENALTY_MS } = this.#options;
    const penalized = clients.hold(client);
    this.#penalized.add(penalized);
    setTimeout(() => {
      this.#penalized.delete(penalized);
      clients.leave(penalized);
    }, penaltyMs).unref();
    for (const { socket, client: owner, pending } of connections.values()) {
      if (owner !== client || socket.writableEnded) continue;
      const { body, complete } = pending?.req ?? { body: null, complete: true };
      // Connections accepted in this tick have not been read yet, nor have the bodies that have not begun.
      if (
        socket.bytesRead === 0 ||
        (!complete && (body === null || body.pieces.pieces === 0 || body.pieces.isSmall))
      )
        socket.destroy();
    }
  }

  onSmallPieces({ socket }: RequestBody): void {
    const { connections, refuse } = this.#options;
    this.cut++;
    const connection = connections.get(socket);
    if (connection === undefined) return;
    // If no reply is due, the reply was already written, and the rest of the body was being discarded.
    if (connection.pending === null) closeUnread(socket);
    else refuse(socket, SMALL_PIECES);
    if (connection.client !== null) this.add(connection.client);
  }
}
