/**
 * Request bodies that are still on their way. A connection to the upstream is scarce, and a client that sends slowly, by
 * intent or not, would hold one for as long as it likes. So a small body is awaited before one is taken.
 */
import type { IncomingMessage } from 'node:http';

/** Bodies up to this size are awaited: well below what node:http holds for a reader that has not come yet. */
export const AWAITED_BYTES_MAX = 16_384;

/** @returns the announced length of the body; Infinity when it is chunked, 0 when there is none */
export function announcedBytes(rawHeaders: readonly string[]): number {
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === 14 && name.toLowerCase() === 'content-length') return Number(rawHeaders[i + 1]);
    if (name.length === 17 && name.toLowerCase() === 'transfer-encoding') return Number.POSITIVE_INFINITY;
  }
  return 0;
}

/**
 * What a body's end cannot be told from with certainty: whoever reads it another way sees other requests.
 *
 * @returns what is wrong; null when the framing is sound
 */
export function framingProblem(rawHeaders: readonly string[]): string | null {
  let hasLength = false;
  let isChunked = false;
  for (let i = 0; i < rawHeaders.length; i += 2) {
    const name = rawHeaders[i] ?? '';
    if (name.length === 14 && name.toLowerCase() === 'content-length') hasLength = true;
    if (name.length !== 17 || name.toLowerCase() !== 'transfer-encoding') continue;
    if (isChunked || rawHeaders[i + 1]?.trim().toLowerCase() !== 'chunked') {
      return 'the only transfer coding understood here is chunked';
    }
    isChunked = true;
  }
  return hasLength && isChunked ? 'the request has both Content-Length and Transfer-Encoding' : null;
}

/** Calls back once the whole body is there, unread. Never when the client leaves before. */
export function whenArrived(req: IncomingMessage, then: () => void): void {
  const look = (): void => {
    if (!req.complete) return;
    req.off('readable', look);
    then();
  };
  req.on('readable', look);
}
