/**
 * Request bodies that are still on their way. A connection to the upstream is scarce, and a client that sends slowly, by
 * intent or not, would hold one for as long as it likes. So a small body is awaited before one is taken.
 */
import type { IncomingMessage } from 'node:http';

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
