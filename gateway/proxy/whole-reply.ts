/** Writes a reply in one write if it is complete before any part was written, which is the usual case. */
import type { ClientRequest, ClientResponse } from '#gateway/http/client-exchange.ts';
import { discardBody } from '#gateway/http/lingering-close.ts';
import type { ClientHeaders } from './response-headers.ts';

/** Up to this size head and body are one string. Beyond it, copying costs more than a second write. */
export const ONE_WRITE_BYTES = 16_384;

interface WholeReply {
  readonly status: number;
  readonly statusText: string;
  readonly head: ClientHeaders;
  readonly body: Buffer | null;
}

export function writeWhole(
  req: ClientRequest,
  res: ClientResponse,
  { status, statusText, head, body }: WholeReply,
): void {
  const hasBody = req.method !== 'HEAD' && status !== 204 && status !== 304;
  if (!head.hasContentLength && hasBody) head.headers.push('Content-Length', String(body?.length ?? 0));
  res.writeHead(status, statusText, head.headers);
  if (body === null || !hasBody) res.end();
  else if (body.length <= ONE_WRITE_BYTES) res.end(body.toString('latin1'), 'latin1');
  else res.end(body);
  discardBody(req.body);
}
