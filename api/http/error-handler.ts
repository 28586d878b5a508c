/** Handles all errors: callers get the error body of the surface, without internals. */
import type { Socket } from 'node:net';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DatabaseBusy, DatabaseFault } from '#api/db/faults.ts';
import { ApiError, BODY_BYTES_MAX, badRequest, serviceUnavailable } from '#api/errors.ts';
import { toErrorReply } from './envelopes.ts';
import { sendErrorPage, wantsErrorPage } from './error-page.ts';
import { type FindReplyRules, matchedPath, setReplyHeaders } from './reply-headers.ts';

const CLIENT_LEFT = 'the client left before its body was complete';

export type ErrorHandler = (cause: unknown, request: FastifyRequest, reply: FastifyReply) => FastifyReply;

export function createErrorHandler(findRules: FindReplyRules): ErrorHandler {
  return (cause, request, reply) => {
    const hasLeft = request.raw.readableAborted && codeOf(cause) === 'ECONNRESET';
    const error = hasLeft ? badRequest(CLIENT_LEFT) : asApiError(cause);
    // The client has left, so this is not an error.
    if (hasLeft) request.log.info({ requestId: request.id }, CLIENT_LEFT);
    if (error.code === 'internal_server_error') {
      request.log.error({ err: error.cause, requestId: request.id }, 'a request failed');
    }
    const rules = findRules(matchedPath(request));
    // An error may come before all hooks, or after a route made its reply cacheable.
    setReplyHeaders(request, reply, rules);
    if (error.retryAfterSeconds !== null) reply.header('retry-after', error.retryAfterSeconds);
    if (wantsErrorPage(request)) return sendErrorPage(reply, error);
    const path = request.url.split('?', 1)[0] ?? '';
    const { status, mediaType, body } = toErrorReply(error, rules.errorShape, {
      requestId: request.id,
      path,
    });
    // The response schema of the route describes other bodies.
    return reply
      .code(status)
      .header('content-type', `${mediaType}; charset=utf-8`)
      .serializer(JSON.stringify)
      .send(body);
  };
}

/** Errors of Fastify have a status. All other unknown ones are faults. */
export function asApiError(error: unknown): ApiError {
  if (error instanceof ApiError) return error;
  if (error instanceof DatabaseBusy) {
    return serviceUnavailable('The database is busy, or cannot be reached. Please try again.', error);
  }
  // The database has already logged it, once instead of for each request.
  if (error instanceof DatabaseFault) {
    const message =
      'The database does not work. Tell the operator of this service; its log says what is wrong.';
    return serviceUnavailable(message, error, { error: error.problem });
  }
  switch (codeOf(error)) {
    // PostgreSQL cannot store the value, and no check found it: NUL, half a character, or too long for an index.
    case '22021':
    case '22P05':
    case '54000':
      return badRequest('A text is too long, or contains a character that cannot be stored');
    case 'FST_ERR_CTP_BODY_TOO_LARGE': {
      const details = { error: `Request body must not exceed ${BODY_BYTES_MAX} bytes` };
      return new ApiError('payload_too_large', 'Payload Too Large', { details });
    }
  }
  if (error instanceof Error && 'statusCode' in error && Number(error.statusCode) < 500) {
    return badRequest(error.message);
  }
  return new ApiError('internal_server_error', 'Something went wrong. Please try again.', { cause: error });
}

function codeOf(error: unknown): unknown {
  return error instanceof Error && 'code' in error ? error.code : undefined;
}

/** Replies to bytes that Node's parser refuses. There is no request, so this writes to the socket and closes it. */
export function replyToUnparsable(_error: Error, socket: Socket): void {
  if (!socket.writable) return;
  // Node gives up waiting. A reply could cross with the first request, and the client would take it for the answer.
  if (socket.bytesRead === 0) return void socket.destroy();
  const body = '{"code":"bad_request","message":"The request is not valid HTTP","details":{}}';
  const head = 'HTTP/1.1 400 Bad Request\r\nContent-Type: application/json\r\nConnection: close\r\n';
  socket.end(`${head}Content-Length: ${body.length}\r\n\r\n${body}`);
}
