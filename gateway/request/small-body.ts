/**
 * Receives a small body before its request is decided. Nothing of it is taken, so it is forwarded like any other. A slow
 * sender holds only its connection, and connection-watch.ts cuts it.
 */
import type { RequestBody } from '#gateway/http/request-body.ts';
import { BODY_BYTES_MAX } from '#gateway/identity/body-field.ts';

/**
 * @param then called with the body, or with null as soon as it is too large; not called if the client leaves earlier
 */
export function whenSmallArrived(body: RequestBody, then: (bytes: Buffer | null) => void): void {
  const look = (): void => {
    const isTooLarge = body.waitingBytes > BODY_BYTES_MAX;
    if (!isTooLarge && !body.complete) return;
    body.onArrival = null;
    then(isTooLarge ? null : body.look());
  };
  body.onArrival = look;
  look();
}
