/** What every request passes through on its way in and out: headers, bodies, errors. */
import type { FastifyRequest } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { badRequest, routeNotFound, serviceUnavailable } from '#api/errors.ts';
import type { ErrorHandler } from './error-handler.ts';
import { lingerBehind } from './lingering-close.ts';
import { type FindReplyRules, matchedPath, setReplyHeaders } from './reply-headers.ts';
import { parseJsonBody } from './request-body.ts';
import { serializerCompiler } from './serialization.ts';
import { validatorCompiler } from './validation.ts';

/** Bodies of these mean nothing; they are read within the limit and dropped (n8n sends one with DELETE). */
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['DELETE', 'OPTIONS', 'GET', 'HEAD']);

declare module 'fastify' {
  interface FastifyInstance {
    /** What stands before every path of ours where people see it: that of PUBLIC_URL, without a slash at the end. */
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
      // Every body is JSON here, whatever its label says, and a label that Fastify cannot parse is no reason to refuse.
      delete request.raw.headers['content-type'];
    });
    // What a hook before it waited for may have taken longer than its client stayed. Nothing comes any more then, not even
    // an end, and the request would never be over.
    app.addHook('preParsing', (request, _reply, _payload, done) => {
      const { raw } = request;
      done(raw.destroyed && !raw.readableEnded ? badRequest('The connection was closed early') : null);
    });
    // Once we are told to stop, a connection ends with its reply: an idle one would hold the process up.
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

/** Whether what stands in the address may get as far as the database, which stores no NUL. */
function readsAddress({ routeOptions: { url = '', schema } }: FastifyRequest): boolean {
  return /[:*]/.test(url) || schema?.querystring !== undefined;
}

function asBuffer(body: string | Buffer): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body;
}
