/**
 * Request bodies that are still on their way. A connection to the upstream is scarce, and a client that sends slowly, by
 * intent or not, would hold one for as long as it likes. So a small body is awaited before one is taken.
 */
import type { IncomingMessage } from 'node:http';
import type { Client } from '#gateway/bounds/clients.ts';
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

export interface BodyOwner {
  /** Some of the body, or its end, is about to be sent, and the head of the request with it. */
  onBodySent(): void;
}

/**
 * A body that is streamed while it comes in, in portions. Its connection is left alone when nobody reads on.
 *
 * @param outlivesClient a body that breaks off does not end: undici would close the upstream's connection
 */
export async function* inTurns(
  req: IncomingMessage,
  turns: BulkTurns,
  client: Client,
  outlivesClient: boolean,
  owner: BodyOwner,
): AsyncGenerator<Buffer> {
  let goOn = (): void => undefined;
  const transfer: BulkTransfer = { client, onTurn: () => goOn() };
  try {
    for await (const chunk of req.iterator({ destroyOnReturn: false })) {
      const { length } = chunk as Buffer;
      if (!turns.pass(transfer, length)) {
        await new Promise<void>((resolve) => {
          goOn = resolve;
        });
      }
      owner.onBodySent();
      yield chunk as Buffer;
    }
    owner.onBodySent();
  } catch (error) {
    if (!outlivesClient) throw error;
    await new Promise<never>(() => undefined);
  }
}
