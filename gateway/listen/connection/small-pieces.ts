/**
 * Cuts connections whose body arrives in too small pieces. node:http parses all received bytes before it calls back: 64
 * KiB hold 10,000 chunks of one byte, which takes 10 ms. So, as with pipelining, a client that sends them fast gets no
 * new connection for a second.
 */
import type { Socket } from 'node:net';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { Penalties } from '#gateway/bounds/penalties.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { PIECE_BYTES_MIN } from '#gateway/http/piece-count.ts';
import type { PieceListener, RequestBody } from '#gateway/http/request-body.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** A client that takes longer for the pieces does not delay others. */
const FLOOD_MS: Millis = 1000;

export const SMALL_PIECES = unreadReply({
  code: REASONS.smallPieces.code,
  text: REASONS.smallPieces.text(PIECE_BYTES_MIN),
});

interface SmallPiecesOptions {
  readonly clients: Clients;
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly clock: Clock;
  readonly penaltyMs: Millis | undefined;
  /** Replies with SMALL_PIECES if no reply has begun, and closes the connection. */
  readonly refuse: (socket: Socket) => void;
}

export class SmallPieces implements PieceListener {
  readonly clock: Clock;
  readonly penalties: Penalties;
  /** Number of bodies that were cut. */
  cut = 0;
  readonly #options: SmallPiecesOptions;

  constructor(options: SmallPiecesOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.penalties = new Penalties(options.clients, options.penaltyMs);
  }

  onSmallPieces({ socket, pieces }: RequestBody): void {
    this.cut++;
    const connection = this.#options.connections.get(socket);
    if (connection === undefined) return;
    // If no reply is due, the reply was already written, and the rest of the body was being discarded.
    if (connection.pending === null) closeUnread(socket);
    else this.#options.refuse(socket);
    const { client } = connection;
    const isFlood = this.clock() - (pieces?.begunAt ?? 0) < FLOOD_MS;
    if (client !== null && isFlood && this.penalties.add(client)) this.#cutOthers(client);
  }

  /**
   * Closes the other connections of a client. Otherwise their received bytes would be parsed before the requests of
   * other clients.
   */
  #cutOthers(client: Client): void {
    for (const { socket, client: owner, pending } of this.#options.connections.values()) {
      if (owner !== client || socket.writableEnded) continue;
      const isBodyDue = pending !== null && !pending.req.complete;
      if (socket.bytesRead === 0 || (isBodyDue && pending.req.body?.pieces?.isSmall !== false))
        socket.destroy();
    }
  }
}
