/**
 * Ends connections on which a body comes in too small pieces. node:http parses all that has arrived before it asks us: of
 * 64 KiB 10,000 chunks of one byte, a hundredth of a second. So as with pipelining the cut of that connection is not the
 * end for a client that sends them fast: until a second later no new ones are accepted from it.
 */
import type { Socket } from 'node:net';
import type { Client, Clients } from '#gateway/bounds/clients.ts';
import { Penalties } from '#gateway/bounds/penalties.ts';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import type { IncomingRequest, PieceListener } from '#gateway/http/incoming-request.ts';
import { lingeringClose, stopParsing } from '#gateway/http/lingering-close.ts';
import { PIECE_BYTES_MIN } from '#gateway/http/piece-count.ts';
import { unreadReply } from '#gateway/reply/own-reply.ts';
import type { Clock, Millis } from '#shared/clock.ts';

/** A client that needs longer for its pieces does not keep others waiting. */
const FLOOD_MS: Millis = 1000;

export const SMALL_PIECES = unreadReply(
  'gateway_request_timeout',
  `the request body comes in too small pieces; send at least ${PIECE_BYTES_MIN} bytes in each`,
);

interface SmallPiecesOptions {
  readonly clients: Clients;
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly clock: Clock;
  readonly penaltyMs: Millis | undefined;
  /** Answers with SMALL_PIECES where no reply has begun, and ends the connection. */
  readonly refuse: (socket: Socket) => void;
}

export class SmallPieces implements PieceListener {
  readonly clock: Clock;
  readonly penalties: Penalties;
  /** Bodies that were cut. */
  cut = 0;
  readonly #options: SmallPiecesOptions;

  constructor(options: SmallPiecesOptions) {
    this.#options = options;
    this.clock = options.clock;
    this.penalties = new Penalties(options.clients, options.penaltyMs);
  }

  onSmallPieces({ socket, pieces }: IncomingRequest): void {
    this.cut++;
    const connection = this.#options.connections.get(socket);
    if (connection === undefined) return;
    stopParsing(socket);
    // Its reply is out, and the body was only thrown away.
    if (connection.pending === null) lingeringClose(socket);
    else this.#options.refuse(socket);
    const { client } = connection;
    const isFlood = this.clock() - (pieces?.begunAt ?? 0) < FLOOD_MS;
    if (client !== null && isFlood && this.penalties.add(client)) this.#cutOthers(client);
  }

  /** What has arrived on them would be parsed as well before anybody else has a turn. */
  #cutOthers(client: Client): void {
    for (const { socket, client: owner, pending } of this.#options.connections.values()) {
      if (owner !== client || socket.writableEnded) continue;
      const isBodyDue = pending !== null && !pending.req.complete;
      if (socket.bytesRead === 0 || (isBodyDue && pending.req.pieces?.isSmall !== false)) socket.destroy();
    }
  }
}
