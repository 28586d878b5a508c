/**
 * Checks access to the admin API: a caller needs GATEWAY_ADMIN_TOKEN, or a session that began with it on the page. If
 * no token is set, every program on this machine has access.
 *
 * A web page that the operator visits must not act for the operator. Its requests have another Origin; its Host is
 * another name if that name resolves to this machine (DNS rebinding); its forms cannot send JSON; and it does not know
 * the proof of a session.
 */
import { createHash, timingSafeEqual } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { AdminError } from './input.ts';
import { PROOF_HEADER, type Session, type Sessions } from './sessions.ts';

/** Host field with a name of this machine: with a port, and IPv6 in brackets. */
const LOCAL_HOST_FIELD = /^(?:localhost|\[::1\]|127(?:\.\d{1,3}){3})(?::\d{1,5})?$/i;

/**
 * An address, or a name without a dot, such as a service's. Outsiders cannot make such a name resolve to this machine.
 */
const UNFORGED_HOST_FIELD = /^(?:\[[0-9a-f:.]+\]|\d{1,3}(?:\.\d{1,3}){3}|[a-z0-9_-]+)(?::\d{1,5})?$/i;

/** HTML forms cannot send this content type. */
const JSON_TYPE = 'application/json';

export interface GuardOptions {
  /** All paths but /healthz and /readyz require it; null if no token is required. */
  readonly token: string | null;
  /** Whether only programs on this machine can reach the listener. */
  readonly isLoopback: boolean;
}

declare module 'fastify' {
  interface FastifyContextConfig {
    /** Whether the route needs no token and no session. */
    isOpen?: boolean;
    /** Whether the reply is the same for everybody, so that its Host is not checked. */
    saysNothing?: boolean;
  }
}

/** Adds the checks to all routes of this scope. */
export function guard(scope: FastifyInstance, options: GuardOptions, sessions: Sessions): void {
  // Fastify also accepts text by default, and a form can send text.
  scope.removeContentTypeParser('text/plain');
  scope.addHook('onRequest', async (request, reply) => refuse(request, reply, options, sessions));
}

/**
 * Without a token: refuses a Host that outsiders could make resolve to this listener (DNS rebinding). Browsers always
 * send a Host field; probes of HTTP/1.0 may send none.
 */
export function addHostCheck(app: FastifyInstance): void {
  app.addHook('onRequest', async ({ headers, routeOptions }, reply) => {
    if (headers.host === undefined || UNFORGED_HOST_FIELD.test(headers.host)) return;
    if (routeOptions.config.saysNothing === true) return;
    return reply.code(403).send({
      message:
        'without GATEWAY_ADMIN_TOKEN the admin listener answers to addresses and to names without a dot only, such as localhost; use one of them, or set the token',
    });
  });
}

export function isBearer(authorization: string | undefined, token: string): boolean {
  return isSame(authorization ?? '', `Bearer ${token}`);
}

/** Compares two texts in constant time. */
export function isSame(one: string, other: string): boolean {
  const digest = (text: string): Buffer => createHash('sha256').update(text).digest();
  return timingSafeEqual(digest(one), digest(other));
}

export function sessionOf({ headers }: FastifyRequest, sessions: Sessions): Session | null {
  return sessions.of(headers.cookie, headers[PROOF_HEADER]);
}

async function refuse(
  request: FastifyRequest,
  reply: FastifyReply,
  { token, isLoopback }: GuardOptions,
  sessions: Sessions,
): Promise<FastifyReply | undefined> {
  const { headers, method } = request;
  if (token !== null && isBearer(headers.authorization, token)) return;
  if (token === null) {
    if (!isLoopback)
      throw new AdminError(
        403,
        'the admin API is closed because GATEWAY_ADMIN_HOST is not loopback; set GATEWAY_ADMIN_TOKEN',
      );
    if (!LOCAL_HOST_FIELD.test(headers.host ?? ''))
      throw new AdminError(
        403,
        'without GATEWAY_ADMIN_TOKEN the admin API answers to localhost, 127.0.0.1 and [::1] only; use one of them, or set the token',
      );
  }
  if (isFromElsewhere(request))
    throw new AdminError(
      403,
      'this request comes from a page of another origin; a proxy in front of the admin listener has to pass on the Host header',
    );
  const isOpen = request.routeOptions.config.isOpen === true;
  if (token !== null && !isOpen && sessionOf(request, sessions) === null) {
    return reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send({ message: 'send GATEWAY_ADMIN_TOKEN as Bearer token, or sign in on the page' });
  }
  const type = headers['content-type']?.split(';')[0]?.trim().toLowerCase();
  if (method === 'POST' && type !== JSON_TYPE) throw new AdminError(415, `send the body as ${JSON_TYPE}`);
  return;
}

/** Whether a browser sent the request from another origin. Programs do not send these headers. */
function isFromElsewhere({ headers }: FastifyRequest): boolean {
  const { origin, host } = headers;
  if (origin !== undefined && URL.parse(origin)?.host !== URL.parse(`http://${host}`)?.host) {
    // If a proxy in front ends TLS, the default ports of both sides differ.
    return URL.parse(origin)?.host !== URL.parse(`https://${host}`)?.host;
  }
  const site = headers['sec-fetch-site'];
  return site !== undefined && site !== 'same-origin' && site !== 'none';
}
