/** Headers, bodies and errors of all requests and replies. */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { ApiError, badRequest, serviceUnavailable } from '#api/errors.ts';
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
      const advice = 'check method and path against the API description';
      throw new ApiError('not_found', `There is no such route; ${advice}`);
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
      // Fastify closes the connection of a body that is too large. That would reset it while the client still sends, and the
      // reset can overtake the reply. Node reads the rest of a body and drops it.
      if (!request.raw.complete) reply.removeHeader('connection');
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
