/** Passes the body of a stream to its HTTP/1.1 request, and joins small frames. */
import type { ClientRequest } from 'node:http';
import type { ServerHttp2Stream } from 'node:http2';
import { JOINED_BYTES_MAX } from '#gateway/http/request-body.ts';

/** @param takes called for each frame. It returns false to discard it */
export function passBody(
  stream: ServerHttp2Stream,
  call: ClientRequest,
  takes: (bytes: number) => boolean,
): void {
  let parts: Buffer[] = [];
  let bytes = 0;
  let isArmed = false;
  const flush = (): void => {
    const [first, ...others] = parts;
    if (first === undefined || call.destroyed) return;
    const part = others.length === 0 ? first : Buffer.concat(parts, bytes);
    parts = [];
    bytes = 0;
    if (!call.write(part)) stream.pause();
  };
  stream.on('data', (chunk: Buffer) => {
    if (!takes(chunk.length) || call.destroyed) return;
    parts.push(chunk);
    bytes += chunk.length;
    if (bytes >= JOINED_BYTES_MAX) flush();
    else if (!isArmed) {
      isArmed = true;
      setImmediate(() => {
        isArmed = false;
        flush();
      });
    }
  });
  stream.on('end', () => {
    flush();
    call.end();
  });
  call.on('drain', () => stream.resume());
  // When the call is closed, the request accepts no more of the body.
  call.once('close', () => {
    if (!stream.closed) stream.pause();
  });
}
