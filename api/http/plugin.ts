/** What every request passes through on its way in and out: headers, bodies, errors, and answers for wrong methods. */
import type { FastifyInstance, FastifyRequest, HTTPMethods } from 'fastify';
import fastifyPlugin from 'fastify-plugin';
import { methodNotAllowed, routeNotFound } from '#api/errors.ts';
import { replyWithError } from './error-handler.ts';
import { lingerBehind } from './lingering-close.ts';
import { PREFLIGHT, setReplyHeaders } from './reply-headers.ts';
import { parseJsonBody } from './request-body.ts';
import { validatorCompiler } from './validation.ts';

/** Bodies of these mean nothing; they are read within the limit and dropped (n8n sends one with DELETE). */
const METHODS_WITHOUT_BODY: ReadonlySet<string> = new Set(['DELETE', 'OPTIONS', 'GET', 'HEAD']);

export const repliesPlugin = fastifyPlugin(
  async (app) => {
    app.setValidatorCompiler(validatorCompiler);
    app.setErrorHandler(replyWithError);
    app.setNotFoundHandler(async () => {
      throw routeNotFound();
    });

    app.addHook('onRequest', async (request, reply) => {
      setReplyHeaders(request, reply);
      // Every body is JSON here, whatever its label says, and a label that Fastify cannot parse is no reason to refuse.
      delete request.raw.headers['content-type'];
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
  { name: 'replies' },
);

function asBuffer(body: string | Buffer): Buffer {
  return typeof body === 'string' ? Buffer.from(body) : body;
}

const METHODS = ['GET', 'HEAD', 'POST', 'PUT', 'PATCH', 'DELETE', 'OPTIONS'] as const satisfies HTTPMethods[];

/** Remembers each path's methods as routes are added; call the result when all are there. */
export function collectRoutes(app: FastifyInstance): { refuseOtherMethods(): void } {
  const methodsByUrl = new Map<string, Set<string>>();
  app.addHook('onRoute', ({ url, method }) => {
    const methods = methodsByUrl.get(url) ?? new Set<string>();
    for (const one of Array.isArray(method) ? method : [method]) methods.add(one);
    methodsByUrl.set(url, methods);
  });

  return {
    /** A known path with an unknown method answers 405 and says which methods it has. */
    refuseOtherMethods() {
      for (const [url, methods] of [...methodsByUrl]) {
        if (url.includes('*')) continue;
        const hasPreflight = isClientPath(url);
        const missing = METHODS.filter(
          (method) => !methods.has(method) && !(hasPreflight && method === 'OPTIONS'),
        );
        const allowed = [...methods, ...(hasPreflight ? ['OPTIONS'] : [])];
        app.route({
          method: missing,
          url,
          schema: { hide: true },
          handler: async (request) => {
            throw methodNotAllowed(request.method, allowed);
          },
        });
      }
    },
  };
}

/** Preflights of every client path, also of workspaces that do not exist (contract client-api.md §1). */
export async function preflightRoutes(app: FastifyInstance): Promise<void> {
  for (const url of ['/api/v1/client/*', '/api/v2/client/*']) {
    app.options(url, { schema: { hide: true } }, async (request, reply) => {
      if (isCollection(request.url)) reply.header('cache-control', PREFLIGHT);
      return { data: {} };
    });
  }
}

function isClientPath(url: string): boolean {
  return /^\/api\/v[12]\/client\//.test(url);
}

function isCollection(target: string): boolean {
  return /\/(environment|displays|responses|user|storage)\/?(\?|$)/.test(target);
}
