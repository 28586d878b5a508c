/** Handles all errors: callers get the error body of the surface, without internals. */
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
    /** The message for a body that is not JSON, if clients of this route expect another one. */
    readonly malformedJsonMessage?: string;
  }
}

/** Methods without a body. A refused value was in the query. */
const bodiless: ReadonlySet<string> = new Set(['GET', 'HEAD', 'DELETE']);

const CLIENT_LEFT = 'the client left before its body was complete';

export type ErrorHandler = (cause: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

export function createErrorHandler(findRules: FindReplyRules): ErrorHandler {
  return (cause, request, reply) => {
    const hasLeft = request.raw.readableAborted && isReset(cause);
    const error = hasLeft ? badRequest(CLIENT_LEFT) : asApiError(cause);
    // The client has left, so this is not an error.
    if (hasLeft) request.log.info({ requestId: request.id }, CLIENT_LEFT);
    if (error.code === 'internal_server_error') {
      request.log.error({ err: error.cause, requestId: request.id }, 'a request failed');
    }
    const rules = findRules(matchedPath(request));
    // An error may come before all hooks, or after a route made its reply cacheable.
    setReplyHeaders(request, reply, rules);
    if (error instanceof RetryLater) reply.header('retry-after', error.retryAfterSeconds);
    if (wantsErrorPage(request)) return sendErrorPage(reply, error);
    const { status, contentType, body } = toErrorReply(error, {
      errorShape: rules.errorShape,
      requestId: request.id,
      path: request.url.split('?', 1)[0] ?? '',
      malformedJsonMessage: request.routeOptions.config?.malformedJsonMessage,
      showsParserText: rules.isCrossOrigin,
      part: partOf(cause) ?? (bodiless.has(request.method) ? 'querystring' : undefined),
    });
    const allowed = error.details.allowed_methods;
    if (Array.isArray(allowed)) reply.header('allow', allowed.join(', '));
    // The error body is already text. Skip the response schema of the route, which describes successes.
    return reply
      .code(status)
      .header('content-type', contentType)
      .serializer(identity)
      .send(JSON.stringify(body));
  };
}

/** Whether the error comes from reading a body whose connection was closed. */
function isReset(cause: unknown): boolean {
  return cause instanceof Error && 'code' in cause && cause.code === 'ECONNRESET';
}

/** Returns the part of the request that a validation error of Fastify concerns: body, querystring or params. */
function partOf(cause: unknown): string | undefined {
  const part: unknown = cause instanceof Error ? Reflect.get(cause, 'validationContext') : undefined;
  return typeof part === 'string' ? part : undefined;
}

function identity(payload: unknown): string {
  return String(payload);
}

/** Errors of Fastify have a code and a status. All others are faults. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DatabaseBusy) {
    const what = error instanceof DatabaseAway ? 'cannot be reached' : 'is busy';
    return serviceUnavailable(`The database ${what}. Please try again in a few seconds.`, error);
  }
  // The database has already logged it, once instead of for each request.
  if (error instanceof DatabaseFault) return databaseFailed(error.problem, error);
  if (!(error instanceof Error) || !('code' in error)) return internalError(error);
  switch (error.code) {
    // PostgreSQL cannot store the value, and no check found it: NUL, half a character, or too long for an index.
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

/**
 * Replies to bytes that Node's parser refuses. There is no request, so this writes the reply to the socket and closes
 * it.
 */
export function replyToUnparsable(_error: Error, socket: Socket): void {
  if (!socket.writable) return;
  // Node gives up waiting. A reply could cross with the first request, and the client would take it for the answer.
  if (socket.bytesRead === 0) {
    socket.destroy();
    return;
  }
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
