/**
 * Who may use the admin API: whoever has GATEWAY_ADMIN_TOKEN, or, where none is set, whoever is on this machine. In the
 * latter case a web page that the operator visits must not pass for the operator: its requests name another host (DNS
 * rebinding), and its forms cannot send JSON.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** As GATEWAY_ADMIN_HOST. */
export const LOOPBACK = /^(?:localhost|::1|127(?:\.\d{1,3}){3})$/;
/** As the Host field: with a port, and IPv6 in brackets. */
const LOCAL_HOST_FIELD = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})(?::\d{1,5})?$/i;

export interface GuardOptions {
  readonly token: string | null;
  /** The listener can be reached from this machine only. */
  readonly isLoopback: boolean;
}

/** Adds the checks to all routes of this scope. */
export function guard(scope: FastifyInstance, options: GuardOptions): void {
  // By default text would be taken as well, and a form can send that.
  scope.removeContentTypeParser('text/plain');
  scope.addHook('onRequest', async (request, reply) => refuse(request, reply, options));
}

export function isBearer(authorization: string | undefined, token: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(authorization ?? ''), digest(`Bearer ${token}`));
}

async function refuse(
  { headers, method }: FastifyRequest,
  reply: FastifyReply,
  { token, isLoopback }: GuardOptions,
): Promise<FastifyReply | undefined> {
  if (token !== null) {
    if (isBearer(headers.authorization, token)) return;
    return reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send({ message: 'send GATEWAY_ADMIN_TOKEN as Bearer token' });
  }
  if (!isLoopback) {
    return reply.code(403).send({
      message: 'the admin API is closed because GATEWAY_ADMIN_HOST is not loopback; set GATEWAY_ADMIN_TOKEN',
    });
  }
  if (!LOCAL_HOST_FIELD.test(headers.host ?? '')) {
    return reply.code(403).send({
      message:
        'without GATEWAY_ADMIN_TOKEN the admin API answers to localhost, 127.0.0.1 and [::1] only; use one of them, or set the token',
    });
  }
  if (method === 'POST' && !/^application\/json\b/i.test(headers['content-type'] ?? ''))
    return reply.code(415).send({ message: 'send the body as application/json' });
  return;
}
