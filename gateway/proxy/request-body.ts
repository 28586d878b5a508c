/**
 * Receives request bodies. Connections to the upstream are scarce, and a slow sender would hold one for long. So a
 * small body is received completely before a connection is taken.
 */
import { setImmediate as endOfTick } from 'node:timers/promises';
import type { Client } from '#gateway/bounds/clients.ts';
import type { RequestBody } from '#gateway/http/client-exchange.ts';
import type { Transfer, TransferScheduler } from './transfer-scheduler.ts';

/** Bodies up to this size are received before a connection is taken. node:http buffers more than this by itself. */
export const AWAITED_BYTES_MAX = 16_384;

/** Calls back once the whole body has arrived, without reading it. Never calls back if the client leaves earlier. */
export function whenArrived(body: RequestBody, then: () => void): void {
  const look = (): void => {
    if (!body.complete) return;
    body.off('readable', look);
    then();
  };
  body.on('readable', look);
}

/** Maximum size of a piece that waits for the end of the tick, and is joined with later ones. */
export const JOINED_BYTES_MAX = 16_384;
const READABLE_EVENTS = ['readable', 'end', 'error', 'close'] as const;

export interface BodyOwner {
  /** Called before data, or the end of the body, is sent together with the head of the request. */
  onBodySent(): void;
  /** Called when the whole body was passed to the connection. */
  onBodyEnd(): void;
}

/**
 * Streams a body in scheduled portions.
 *
 * @param outlivesClient a body that breaks off never ends, because an error would close the upstream connection
 */
export async function* scheduledBody(
  body: RequestBody,
  scheduler: TransferScheduler,
  client: Client,
  outlivesClient: boolean,
  owner: BodyOwner,
): AsyncGenerator<Buffer> {
  let goOn = (): void => undefined;
  const transfer: Transfer = { client, resume: () => goOn() };
  let piecesPassed = 0;
  try {
    for await (const part of joined(body)) {
      const pieces = body.pieces?.pieces ?? 0;
      const isPassed = scheduler.pass(transfer, part.length, pieces - piecesPassed);
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

/** Reads the received data: small pieces joined, then at most one large piece unchanged. */
function readParts(body: RequestBody): Buffer[] {
  const small: Buffer[] = [];
  let bytes = 0;
  let large: Buffer | null = null;
  while (large === null && bytes < JOINED_BYTES_MAX) {
    const piece = body.read() as Buffer | null;
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

/** Yields data as it arrives, with small pieces joined. @throws Error if the body breaks off */
async function* joined(body: RequestBody): AsyncGenerator<Buffer> {
  let wake = (): void => undefined;
  const onEvent = (): void => wake();
  for (const event of READABLE_EVENTS) body.on(event, onEvent);
  try {
    for (;;) {
      const { readableLength } = body;
      if (readableLength > 0 && readableLength < JOINED_BYTES_MAX && !body.complete) await endOfTick();
      const parts = readParts(body);
      if (parts.length > 0) yield* parts;
      else if (body.readableEnded) return;
      else if (body.destroyed) throw body.errored ?? new Error('the request body broke off');
      else
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
    }
  } finally {
    for (const event of READABLE_EVENTS) body.off(event, onEvent);
  }
}
