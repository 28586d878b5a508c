/** Headers, bodies and errors of all requests and replies. */
import type { FastifyReply, FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { badRequest, routeNotFound, serviceUnavailable } from '#api/errors.ts';
import type { ErrorHandler } from './error-handler.ts';
import { type FindReplyRules, matchedPath, setReplyHeaders } from './reply-headers.ts';
import { parseJsonBody } from './request-body.ts';
import { serializerCompiler } from './serialization.ts';
import { validatorCompiler } from './validation.ts';

/** Bodies of these methods are read within the limit and ignored (n8n sends one with DELETE). */
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['DELETE', 'OPTIONS', 'GET', 'HEAD']);

declare module 'fastify' {
  interface FastifyInstance {
    /** The path of PUBLIC_URL, without a slash at the end. It precedes all paths that people see. */
    basePath: string;
  }
}

interface HttpOptions {
  readonly publicUrl: string;
  readonly findRules: FindReplyRules;
  readonly errorHandler: ErrorHandler;
  readonly isReady: () => boolean;
}

export const httpPlugin = fastifyPlugin<HttpOptions>(
  async (app, { publicUrl, findRules, errorHandler, isReady }) => {
    app.decorate('basePath', new URL(publicUrl).pathname.replace(/\/+$/, ''));
    app.setValidatorCompiler(validatorCompiler);
    app.setSerializerCompiler(serializerCompiler);
    app.setErrorHandler(errorHandler);
    app.setNotFoundHandler(async () => {
      throw routeNotFound();
    });

    app.addHook('onRequest', async (request, reply) => {
      setReplyHeaders(request, reply, findRules(matchedPath(request)));
      if (request.url.includes('%00') && readsAddress(request)) {
        throw badRequest('The address contains a NUL character');
      }
      if (!isReady()) throw serviceUnavailable('The service is starting. Please try again in a few seconds.');
      // Every body is read as JSON, whatever its content type, even one that Fastify cannot parse.
      delete request.raw.headers['content-type'];
    });
    // The client may have left while a hook was waiting. Then no event follows, and the request would never end.
    app.addHook('preParsing', (request, _reply, _payload, done) => {
      const { raw } = request;
      done(raw.destroyed && !raw.readableEnded ? badRequest('The connection was closed early') : null);
    });
    // While the process stops, connections end with their replies, because idle ones would delay it.
    let isClosing = false;
    app.addHook('preClose', async () => {
      isClosing = true;
    });
    app.addHook('onSend', async (request, reply) => {
      lingerBehind(request, reply);
      if (isClosing) reply.header('connection', 'close');
    });

    app.removeAllContentTypeParsers();
    app.addContentTypeParser(
      '*',
      { parseAs: 'buffer' },
      async (request: FastifyRequest, body: string | Buffer) =>
        METHODS_WITHOUT_BODY.has(request.method) ? undefined : parseJsonBody(asBuffer(body)),
    );
  },
  { name: 'http' },
);

/** Whether a part of the URL may reach the database, which stores no NUL. */
function readsAddress({ routeOptions: { url = '', schema } }: FastifyRequest): boolean {
  return /[:*]/.test(url) || schema?.querystring !== undefined;
}

function asBuffer(body: string | Buffer): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

const LINGER_BYTES_MAX = 64 * 1_048_576;
const LINGER_MS_MAX = 10_000;

/**
 * Keeps the connection open for a reply to a request whose body was not read, and discards the rest of the body, up to a
 * bound. Closing the connection while the client still sends would reset it, and the reset can overtake the reply.
 */
function lingerBehind({ raw }: FastifyRequest, reply: FastifyReply): void {
  const { headers } = raw;
  const hasBody = headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) > 0;
  if (!hasBody || raw.complete || raw.readableEnded || raw.destroyed) return;
  // Fastify closes the connection of a body that is too large, which is too early.
  reply.removeHeader('connection');
  let left = LINGER_BYTES_MAX;
  const timer = setTimeout(() => raw.destroy(), LINGER_MS_MAX).unref();
  for (const event of ['end', 'close']) raw.once(event, () => clearTimeout(timer));
  raw.on('data', (chunk: Buffer) => {
    left -= chunk.length;
    if (left < 0) raw.destroy();
  });
  raw.resume();
}
