/**
 * Answers to requests whose body was not read. Closing a connection on which the client still sends resets it, and the
 * reset can overtake the answer. So the connection stays open, and what comes is read and thrown away, up to a bound in
 * bytes and time.
 */
import type { FastifyReply, FastifyRequest } from 'fastify';

const BYTES_MAX = 64 * 1_048_576;
const MS_MAX = 10_000;

/** Before a reply is sent. Does nothing for a request whose body has been read, or that has none. */
export function lingerBehind({ raw }: FastifyRequest, reply: FastifyReply): void {
  const { headers } = raw;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (!hasBody || raw.complete || raw.readableEnded || raw.destroyed) return;
  // Fastify asks for it when a body is too large; it would come too early.
  reply.removeHeader('connection');
  let left = BYTES_MAX;
  const timer = setTimeout(() => raw.destroy(), MS_MAX).unref();
  for (const event of ['end', 'close']) raw.once(event, () => clearTimeout(timer));
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) raw.destroy();
  });
  raw.resume();
}
