/** Wires the API: builds a FastifyInstance from a context. Tests call it with `app.inject`. */
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { auditPlugin } from '#api/audit/plugin.ts';
import { authPlugin } from '#api/auth/plugin.ts';
import { docsPlugin } from '#api/docs/plugin.ts';
import { limitsPlugin } from '#api/limits/plugin.ts';
import { readArrived } from '#api/processes/stop.ts';
import { newUuid } from '#api/values/ids.ts';
import type { Context } from './context.ts';
import { BODY_BYTES_MAX } from './errors.ts';
import { createErrorHandler, replyToUnparsable } from './http/error-handler.ts';
import { httpPlugin } from './http/plugin.ts';
import { registerSurfaces, surfaceOf } from './surfaces/surfaces.ts';

/** Maximum length of a path parameter. Our ids have 25 characters, user ids up to 255. */
const PATH_PART_LENGTH_MAX = 512;
/** A client that does not finish its request in this time loses the connection: 10 MiB at 35 KiB a second. */
const REQUEST_TIMEOUT_MS = 300_000;
/** A connection on which nothing moves for this time during a request or its reply is closed. */
const UNREAD_TIMEOUT_MS = 60_000;

/**
 * The app is ready for `inject`; the caller calls `listen` and `close`.
 *
 * @param isReady while it returns false, every request is answered 503: a first start has to create credentials
 */
export async function buildApp(
  context: Context,
  logger: FastifyBaseLogger,
  isReady: () => boolean = () => true,
  unreadTimeoutMs = UNREAD_TIMEOUT_MS,
): Promise<FastifyInstance> {
  const { db, clock, random, limits } = context;
  const { publicUrl, trustedProxies } = context.config;
  const errorHandler = createErrorHandler(surfaceOf);
  const app = fastify({
    loggerInstance: logger,
    // Do not log requests, because the gateway does.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionTimeout: unreadTimeoutMs,
    // Answer requests that arrive while the app closes.
    return503OnClosing: false,
    schemaController: { compilersFactory: { buildValidator: unused, buildSerializer: unused } },
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PATH_PART_LENGTH_MAX },
    frameworkErrors: errorHandler,
    clientErrorHandler: replyToUnparsable,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : newUuid(random);
    },
  });

  await app.register(httpPlugin, {
    publicUrl,
    findRules: surfaceOf,
    errorHandler,
    isReady,
  });
  await app.register(authPlugin, { db, clock, publicUrl, findSurface: surfaceOf });
  await app.register(auditPlugin, { audit: context.audit });
  await app.register(limitsPlugin, { limiter: limits, trustedProxies, findSurface: surfaceOf });
  await app.register(docsPlugin, { publicUrl, findSurface: surfaceOf });
  await registerSurfaces(app, context);
  // Register this hook last, so that health checks already say that the service stops.
  await app.register(async (scope) => {
    scope.addHook('preClose', () => readArrived(app.server));
  });
  await app.ready();
  return app;
}

/** Replaces Ajv and its serializer, which Fastify would load otherwise. `httpPlugin` has compilers of its own. */
function unused(): never {
  throw new Error('the API has compilers of its own');
}
