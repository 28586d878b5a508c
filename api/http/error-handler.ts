/** The one error handler: whatever went wrong, the caller gets the error body of the surface, and no internals. */
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DatabaseBusy, DatabaseFault } from '#api/db/faults.ts';
import { DatabaseAway } from '#api/db/postgres-errors.ts';
import {
  ApiError,
  badRequest,
  databaseFailed,
  internalError,
  payloadTooLarge,
  RetryLater,
  serviceUnavailable,
} from '#api/errors.ts';
import { toErrorReply } from './envelopes.ts';
import { sendErrorPage, wantsErrorPage } from './error-page.ts';
import { type FindReplyRules, matchedPath, setReplyHeaders } from './reply-headers.ts';

declare module 'fastify' {
  interface FastifyContextConfig {
    /** The text for a body that is not JSON, where clients of this route know another one. */
    readonly malformedJsonMessage?: string;
    /** Likewise on v3 for a body that does not have the shape it should have. */
    readonly invalidBodyMessage?: string;
  }
}

/** These methods have no body, so whatever a handler refuses came with the query. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

const CLIENT_LEFT = 'the client left before its body was complete';

export type ErrorHandler = (cause: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

export function createErrorHandler(findRules: FindReplyRules): ErrorHandler {
  return (cause, request, reply) => {
    const hasLeft = request.raw.readableAborted && isReset(cause);
    const error = hasLeft ? badRequest(CLIENT_LEFT) : asApiError(cause);
    // Nobody reads this reply, and nothing failed here.
    if (hasLeft) request.log.info({ requestId: request.id }, CLIENT_LEFT);
    if (error.code === 'internal_server_error') {
      request.log.error({ err: error.cause, requestId: request.id }, 'a request failed');
    }
    const rules = findRules(matchedPath(request));
    // An error may come before any hook ran, and after a route allowed its reply to be cached.
    setReplyHeaders(request, reply, rules);
    if (error instanceof RetryLater) reply.header('retry-after', error.retryAfterSeconds);
    if (wantsErrorPage(request)) return sendErrorPage(reply, error);
    const { status, contentType, body } = toErrorReply(error, {
      errorShape: rules.errorShape,
      requestId: request.id,
      path: request.url.split('?', 1)[0] ?? '',
      malformedJsonMessage: request.routeOptions.config?.malformedJsonMessage,
      invalidBodyMessage: request.routeOptions.config?.invalidBodyMessage,
      showsParserText: rules.isCrossOrigin,
      part: partOf(cause) ?? (bodiless.has(request.method) ? 'querystring' : undefined),
    });
    const allowed = error.details.allowed_methods;
    if (Array.isArray(allowed)) reply.header('allow', allowed.join(', '));
    // The body is text already: the route's response schema describes successes.
    return reply
      .code(status)
      .header('content-type', contentType)
      .serializer(identity)
      .send(JSON.stringify(body));
  };
}

/** What reading a body ends with when its connection did. */
function isReset(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNRESET';
}

/** Fastify notes on a validation error which part of the request it is about: body, querystring or params. */
function partOf(cause: unknown): string | undefined {
  const part: unknown = cause instanceof Error ? Reflect.get(cause, 'validationContext') : undefined;
  return typeof part === 'string' ? part : undefined;
}

function identity(payload: unknown): string {
  return String(payload);
}

/** Fastify's own errors carry a code and a status; anything else is our fault. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DatabaseBusy) {
    const what = error instanceof DatabaseAway ? 'cannot be reached' : 'is busy';
    return serviceUnavailable(`The database ${what}. Please try again in a few seconds.`, error);
  }
  // The log has it from the database itself, not once for each request.
  if (error instanceof DatabaseFault) return databaseFailed(error.problem, error);
  if (!(error instanceof Error) || !('code' in error)) return internalError(error);
  switch (error.code) {
    // What no check foresaw, and PostgreSQL cannot store: NUL, half a character, an entry too long for an index.
    case '22021':
    case '22P05':
      return badRequest('A text contains a character that cannot be stored');
    case '54000':
      return badRequest('A text is too long');
    case 'FST_ERR_CTP_BODY_TOO_LARGE':
      return payloadTooLarge();
    case 'FST_ERR_BAD_URL':
      return badRequest('The path is not a valid URL; check its percent-encoding');
    case 'FST_ERR_MAX_PARAM_LENGTH':
      return badRequest('A part of the path is too long');
    case 'FST_ERR_CTP_INVALID_CONTENT_LENGTH':
      return badRequest('The body does not have the length that Content-Length announces');
    default:
      return internalError(error);
  }
}

/** What Node's parser refuses has no request to answer: the reply is written as it is, and the connection ends. */
export function replyToUnparsable(_error: Error, socket: Socket): void {
  if (!socket.writable) return;
  const error = badRequest('The request is not valid HTTP');
  const body = JSON.stringify({ code: error.code, message: error.message, details: error.details });
  socket.end(
    [
      'HTTP/1.1 400 Bad Request',
      'Content-Type: application/json; charset=utf-8',
      `Content-Length: ${Buffer.byteLength(body)}`,
      'Cache-Control: private, no-store',
      'Connection: close',
      '',
      body,
    ].join('\r\n'),
  );
}
