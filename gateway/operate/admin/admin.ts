/**
 * The admin listener. It has its own port, so that no path of the public port leads to it. The admin API serves the
 * command line and the page.
 */
import Fastify, {
  type FastifyError,
  type FastifyInstance,
  type FastifySchemaCompiler,
  type onRequestHookHandler,
} from 'fastify';
import { Errors, type XSchema } from 'typebox/schema';
import { ControlUnavailableError, TooManyChangesError } from '#gateway/bans/control.ts';
import { CONTENT_TYPE, exposition } from '#gateway/observe/metrics/exposition.ts';
import { clientRoutes } from './client-routes.ts';
import type { AdminApiOptions, AdminContext } from './context.ts';
import { CountedRequest } from './counted-request.ts';
import { decisionsRoutes } from './decisions-routes.ts';
import { addHostCheck, guard, isBearer, sessionOf } from './guard.ts';
import { pageRoutes } from './page-routes.ts';
import { policyRoutes } from './policy-routes.ts';
import { sessionRoutes } from './session-routes.ts';
import { Sessions } from './sessions.ts';
import { stateRoutes } from './state-routes.ts';

const BODY_BYTES_MAX = 65_536;
const CONNECTIONS_MAX = 256;
/** Timeout of a request with its body. */
const REQUEST_MS_MAX = 10_000;
/** How often Node looks for requests that are late. */
const CHECK_MS = 1000;

export function buildAdmin(options: AdminApiOptions): FastifyInstance {
  const app = Fastify({
    forceCloseConnections: true,
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_MS_MAX,
    http: {
      headersTimeout: REQUEST_MS_MAX,
      connectionsCheckingInterval: CHECK_MS,
      IncomingMessage: CountedRequest,
    },
    schemaController: {
      compilersFactory: { buildValidator: unused, buildSerializer: () => () => JSON.stringify },
    },
  });
  app.server.maxConnections = CONNECTIONS_MAX;
  // Fastify would reply 408 to a silent connection, and its first request could take that for its own reply.
  app.server.prependListener('clientError', (_error, socket) => {
    if ('bytesRead' in socket && socket.bytesRead === 0) socket.destroy();
  });
  app.setValidatorCompiler(validatorCompiler);
  if (options.token === null) addHostCheck(app);
  app.get('/healthz', { config: { saysNothing: true } }, async () => ({ status: 'ok' }));
  app.get('/readyz', async (_request, reply) => {
    if (!options.ready()) return reply.code(503).send({ status: 'not ready' });
    // Without its store the gateway still decides, by each policy's onStoreFailure. So it stays in rotation and reports
    // the state.
    const isAvailable = (await options.processes()).every(({ storeAvailable }) => storeAvailable);
    return { status: 'ready', store: isAvailable ? 'available' : 'unavailable' };
  });
  const onRequest = askForToken(options.token);
  app.get('/metrics', { onRequest }, async (_request, reply) => {
    return reply.type(CONTENT_TYPE).send(await exposition(await options.families()));
  });
  app.register(async (api) => addApi(api, options), { prefix: '/api' });
  app.register(pageRoutes);
  app.setNotFoundHandler(async (_request, reply) =>
    reply
      .code(404)
      .send({ message: 'the admin listener has a page at /, and /healthz, /readyz, /metrics and /api/' }),
  );
  return app;
}

/** Adds the routes that a token or a session protects. Every change is logged. */
function addApi(api: FastifyInstance, options: AdminApiOptions): void {
  const { log } = options;
  const sessions = new Sessions(options);
  const context: AdminContext = { ...options, sessions, audit: auditTo(options, sessions) };
  guard(api, options, sessions);
  api.addHook('onSend', async (_request, reply) => {
    reply.header('cache-control', 'no-store').header('x-content-type-options', 'nosniff');
  });
  api.setErrorHandler(async (error: FastifyError, _request, reply) => {
    const status = statusOf(error);
    if (status === 500) log.error(error, 'the admin API failed');
    const message = status === 500 ? 'a mistake in the gateway; its log has the details' : error.message;
    return reply.code(status).send({ message });
  });
  for (const addRoutes of [decisionsRoutes, clientRoutes, policyRoutes, sessionRoutes, stateRoutes])
    addRoutes(api, context);
}

/**
 * Interprets schemas instead of compiling them. A field that is not in the schema is an error. Reports only the first
 * finding.
 */
const validatorCompiler: FastifySchemaCompiler<XSchema> =
  ({ schema, httpPart = 'request' }) =>
  (value: unknown) => {
    const [valid, findings] = Errors(schema, value);
    if (valid) return { value };
    // An unknown field causes a finding "schema is false" before the one that names it.
    const finding = findings.find(({ keyword }) => keyword !== 'boolean');
    const { instancePath, message } = finding ?? { instancePath: '', message: 'does not fit the schema' };
    const unknown = finding?.keyword === 'additionalProperties' ? finding.params.additionalProperties : [];
    const names = unknown.length > 0 ? `: ${unknown.join(', ')}` : '';
    return { error: new Error(`${httpPart}${instancePath} ${message}${names}`) };
  };

/** Replaces Ajv, which Fastify would load: 10 MB in each process, for schemas that `validatorCompiler` interprets. */
function unused(): never {
  throw new Error('the admin listener has a validator of its own');
}

function askForToken(token: string | null): onRequestHookHandler {
  return async (request, reply) => {
    if (token === null || isBearer(request.headers.authorization, token)) return;
    await reply
      .code(401)
      .header('www-authenticate', 'Bearer')
      .send({ message: 'send GATEWAY_ADMIN_TOKEN as Bearer token' });
  };
}

function auditTo({ log, token }: AdminApiOptions, sessions: Sessions): AdminContext['audit'] {
  return (request, change, what) => {
    const { ip } = request;
    const session = token === null ? null : sessionOf(request, sessions);
    const who = session === null ? `token, from ${ip}` : `session ${session.name}, from ${ip}`;
    log.info({ by: token === null ? ip : who, change, ...what }, 'admin change');
  };
}

function statusOf(error: FastifyError): number {
  if (error instanceof ControlUnavailableError) return 503;
  if (error instanceof TooManyChangesError) return 409;
  const { statusCode = 500 } = error;
  return statusCode < 500 || statusCode === 503 ? statusCode : 500;
}
