/**
 * Request bodies that are still on their way. A connection to the upstream is scarce, and a client that sends slowly, by
 * intent or not, would hold one for as long as it likes. So a small body is awaited before one is taken.
 */
import type { IncomingMessage } from 'node:http';
import { setImmediate as endOfTurn } from 'node:timers/promises';
import type { Client } from '#gateway/bounds/clients.ts';
import type { IncomingRequest } from '#gateway/http/incoming-request.ts';
import type { BulkTransfer, BulkTurns } from './bulk-turns.ts';

/** Bodies up to this size are awaited: well below what node:http holds for a reader that has not come yet. */
export const AWAITED_BYTES_MAX = 16_384;

/** Calls back once the whole body is there, unread. Never when the client leaves before. */
export function whenArrived(req: IncomingMessage, then: () => void): void {
  const look = (): void => {
    if (!req.complete) return;
    req.off('readable', look);
    then();
  };
  req.on('readable', look);
}

/** Less than this waits for the end of the turn, and goes on together with what comes until then. */
export const JOINED_BYTES_MAX = 16_384;
const READABLE_EVENTS = ['readable', 'end', 'error', 'close'] as const;

export interface BodyOwner {
  /** Some of the body, or its end, is about to be sent, and the head of the request with it. */
  onBodySent(): void;
  /** All of the body has been handed to the connection. */
  onBodyEnd(): void;
}

/**
 * A body that is streamed while it comes in, in portions. Its connection is left alone when nobody reads on.
 *
 * @param outlivesClient a body that breaks off does not end: the connection to the upstream would be closed
 */
export async function* inTurns(
  req: IncomingRequest,
  turns: BulkTurns,
  client: Client,
  outlivesClient: boolean,
  owner: BodyOwner,
): AsyncGenerator<Buffer> {
  let goOn = (): void => undefined;
  const transfer: BulkTransfer = { client, onTurn: () => goOn() };
  let piecesPassed = 0;
  try {
    for await (const part of joined(req)) {
      const pieces = req.pieces?.pieces ?? 0;
      const isPassed = turns.pass(transfer, part.length, pieces - piecesPassed);
      piecesPassed = pieces;
      if (!isPassed) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
      owner.onBodySent();
      yield part;
    }
    owner.onBodySent();
    owner.onBodyEnd();
  } catch (error) {
    if (!outlivesClient) throw error;
    await new Promise<never>(() => undefined);
  }
}

/** What is there: small pieces in one part, a large one behind them as it came. */
function readParts(req: IncomingRequest): Buffer[] {
  const small: Buffer[] = [];
  let bytes = 0;
  let large: Buffer | null = null;
  while (large === null && bytes < JOINED_BYTES_MAX) {
    const piece = req.read() as Buffer | null;
    if (piece === null) break;
    if (piece.length >= JOINED_BYTES_MAX) large = piece;
    else {
      small.push(piece);
      bytes += piece.length;
    }
  }
  const [first, ...others] = small;
  const parts = first === undefined ? [] : [others.length === 0 ? first : Buffer.concat(small, bytes)];
  return large === null ? parts : [...parts, large];
}

/** What comes, small pieces in one part. @throws when the body breaks off */
async function* joined(req: IncomingRequest): AsyncGenerator<Buffer> {
  let wake = (): void => undefined;
  const onEvent = (): void => wake();
  for (const event of READABLE_EVENTS) req.on(event, onEvent);
  try {
    for (;;) {
      const { readableLength } = req;
      if (readableLength > 0 && readableLength < JOINED_BYTES_MAX && !req.complete) await endOfTurn();
      const parts = readParts(req);
      if (parts.length > 0) yield* parts;
      else if (req.readableEnded) return;
      else if (req.destroyed) throw req.errored ?? new Error('the request body broke off');
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    for (const event of READABLE_EVENTS) req.off(event, onEvent);
  }
}
