/**
 * Interim replies of the application, such as 103 Early Hints, on their way to the client (RFC 9110 15.2).
 *
 * They are written at once, because the final reply may take long. `reply-parser.ts` bounds their number and bytes, so
 * they do not wait for a client that does not read.
 */
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { clientHeaders } from './response-headers.ts';

interface Replied {
  readonly req: ClientRequest;
  readonly res: ClientResponse;
}

/**
 * @param raw alternating names and values, as the parser has read them
 * @param added the gateway's fields for the final reply
 */
export function writeInterim(
  { req, res }: Replied,
  status: number,
  reason: string,
  raw: readonly string[],
  added: readonly string[],
): void {
  const { socket } = res;
  // Clients of HTTP/1.0 know no interim replies.
  if (req.httpVersion === '1.0' || res.headersSent || socket?.writable !== true) return;
  const { headers } = clientHeaders(raw, added, status, false);
  // The gateway's fields follow those of the application, and belong to the final reply.
  const end = headers.length - added.length;
  let text = `HTTP/1.1 ${status} ${reason}\r\n`;
  for (let i = 0; i < end; i += 2) text += `${headers[i]}: ${headers[i + 1]}\r\n`;
  socket.write(`${text}\r\n`, 'latin1');
}
