/** Cuts connections whose body arrives in too small pieces. */
import type { Socket } from 'node:net';
import type { ClientConnection } from '#gateway/http/client-connection.ts';
import { closeUnread } from '#gateway/http/lingering-close.ts';
import { PIECE_BYTES_MIN } from '#gateway/http/piece-count.ts';
import type { PieceListener, RequestBody } from '#gateway/http/request-body.ts';
import { REASONS } from '#gateway/refusals/reasons.ts';
import { unreadReply } from '#gateway/reply/refusal-reply.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { Penalties } from './penalties.ts';

/** A client that takes longer for the pieces does not delay others. */
const FLOOD_MS: Millis = 1000;

export const SMALL_PIECES = unreadReply({
  code: REASONS.smallPieces.code,
  text: REASONS.smallPieces.text(PIECE_BYTES_MIN),
});

interface SmallPiecesOptions {
  readonly connections: ReadonlyMap<Socket, ClientConnection>;
  readonly penalties: Penalties;
  readonly clock: Clock;
  /** Replies with SMALL_PIECES if no reply has begun, and closes the connection. */
  readonly refuse: (socket: Socket) => void;
}

export class SmallPieces implements PieceListener {
  readonly clock: Clock;
  /** Number of bodies that were cut. */
  cut = 0;
  readonly #options: SmallPiecesOptions;

  constructor(options: SmallPiecesOptions) {
    this.#options = options;
    this.clock = options.clock;
  }

  onSmallPieces({ socket, pieces }: RequestBody): void {
    const { connections, penalties, refuse } = this.#options;
    this.cut++;
    const connection = connections.get(socket);
    if (connection === undefined) return;
    // If no reply is due, the reply was already written, and the rest of the body was being discarded.
    if (connection.pending === null) closeUnread(socket);
    else refuse(socket);
    const isFlood = this.clock() - (pieces?.begunAt ?? 0) < FLOOD_MS;
    if (connection.client !== null && isFlood) penalties.add(connection.client);
  }
}
