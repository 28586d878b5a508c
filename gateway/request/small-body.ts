/**
 * Receives a small body before its request is decided. The body stays in its stream, so it is forwarded like any other.
 * A slow sender holds only its connection, and connection-watch.ts cuts it.
 */
import type { RequestBody } from '#gateway/http/client-exchange.ts';
import { BODY_BYTES_MAX } from '#gateway/identity/body-field.ts';

/**
 * @param then called with the body, or with null as soon as it is too large; not called if the client leaves earlier
 */
export function whenSmallArrived(body: RequestBody, then: (bytes: Buffer | null) => void): void {
  const look = (): void => {
    const isTooLarge = body.readableLength > BODY_BYTES_MAX;
    if (!isTooLarge && !body.complete) return;
    body.off('readable', look);
    then(isTooLarge ? null : copyOf(body));
  };
  if (body.complete || body.readableLength > BODY_BYTES_MAX) look();
  else body.on('readable', look);
}

function copyOf(body: RequestBody): Buffer {
  const { readableLength } = body;
  if (readableLength === 0) return Buffer.alloc(0);
  // read() without a size would return only the first piece.
  const bytes = body.read(readableLength) as Buffer;
  body.unshift(bytes);
  return bytes;
}
