/** The API's wiring in reading order: context in, FastifyInstance out. Tests drive it with `app.inject`. */
import fastify, { type FastifyBaseLogger, type FastifyInstance, LogController } from 'fastify';
import { authPlugin } from '#api/auth/plugin.ts';
import { docsPlugin } from '#api/docs/plugin.ts';
import { limitsPlugin } from '#api/limits/plugin.ts';
import { loginRoutes } from '#api/resources/accounts/login-routes.ts';
import { accountPages } from '#api/resources/accounts/pages.ts';
import { accountRoutes } from '#api/resources/accounts/routes.ts';
import { actionClassRoutes } from '#api/resources/action-classes/routes.ts';
import { v3SmallRoutes } from '#api/resources/action-classes/v3-routes.ts';
import { apiKeyRoutes } from '#api/resources/api-keys/routes.ts';
import { attributeClassRoutes } from '#api/resources/contacts/attribute-class-routes.ts';
import { contactAttributeKeyRoutes } from '#api/resources/contacts/attribute-key-routes.ts';
import { contactAttributeRoutes } from '#api/resources/contacts/attribute-routes.ts';
import { peopleRoutes } from '#api/resources/contacts/people-routes.ts';
import { contactRoutes } from '#api/resources/contacts/routes.ts';
import { deliveryRoutes } from '#api/resources/deliveries/routes.ts';
import { clientDisplayRoutes } from '#api/resources/displays/routes.ts';
import { environmentRoutes } from '#api/resources/environment/routes.ts';
import { healthRoutes } from '#api/resources/health/routes.ts';
import { integrationRoutes } from '#api/resources/integrations/routes.ts';
import { languageRoutes } from '#api/resources/languages/routes.ts';
import { licenseRoutes } from '#api/resources/license/routes.ts';
import { linkEmailRoutes } from '#api/resources/link-emails/routes.ts';
import { meRoutes } from '#api/resources/me/routes.ts';
import { v2AccountRoutes } from '#api/resources/me/v2-routes.ts';
import { ogRoutes } from '#api/resources/og/routes.ts';
import { profileRoutes } from '#api/resources/profile/routes.ts';
import { clientResponseRoutes } from '#api/resources/responses/client-routes.ts';
import { displayLinkRoutes } from '#api/resources/responses/display-routes.ts';
import { managementResponseRoutes } from '#api/resources/responses/management-routes.ts';
import { v2ResponseRoutes } from '#api/resources/responses/v2-routes.ts';
import { scriptRoutes } from '#api/resources/scripts/routes.ts';
import { segmentRoutes } from '#api/resources/segments/routes.ts';
import { fileRoutes } from '#api/resources/storage/file-routes.ts';
import { grantRoutes } from '#api/resources/storage/grant-routes.ts';
import { uploadRoutes } from '#api/resources/storage/upload-routes.ts';
import { surveyRoutes } from '#api/resources/surveys/routes.ts';
import { v3SurveyRoutes } from '#api/resources/surveys/v3-routes.ts';
import { legacyUserRoutes } from '#api/resources/user/legacy-routes.ts';
import { userRoutes } from '#api/resources/user/routes.ts';
import { webhookRoutes } from '#api/resources/webhooks/routes.ts';
import type { Context } from './context.ts';
import { BODY_BYTES_MAX } from './errors.ts';
import { replyToUnparsable, replyWithError } from './http/error-handler.ts';
import { collectRoutes, preflightRoutes, repliesPlugin } from './http/plugin.ts';
import { newUuid } from './ids.ts';

/** The longest part of a path that is looked at; our ids have 25 characters, user ids up to 255. */
const PATH_PART_LENGTH_MAX = 512;
/** A client that does not finish its request in this time loses the connection: 10 MiB at 35 KiB a second. */
const REQUEST_TIMEOUT_MS = 300_000;

/** The returned app is ready for `inject`; `listen` and `close` are the caller's. */
export async function buildApp(context: Context, logger: FastifyBaseLogger): Promise<FastifyInstance> {
  const app = fastify({
    loggerInstance: logger,
    // Requests are logged where they enter, by the gateway.
    logController: new LogController({ disableRequestLogging: true }),
    bodyLimit: BODY_BYTES_MAX,
    requestTimeout: REQUEST_TIMEOUT_MS,
    // Those who close us stop listening first; requests that still arrive on open connections are answered.
    return503OnClosing: false,
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: PATH_PART_LENGTH_MAX },
    frameworkErrors: replyWithError,
    clientErrorHandler: replyToUnparsable,
    requestIdHeader: false,
    genReqId: (request) => {
      const given = request.headers['x-request-id'];
      return typeof given === 'string' && /^[\w.:-]{1,128}$/.test(given) ? given : newUuid(context.random);
    },
  });

  const routes = collectRoutes(app);
  await app.register(repliesPlugin);
  await app.register(authPlugin, { context });
  await app.register(limitsPlugin, { context });
  await app.register(docsPlugin, { context });
  await app.register(preflightRoutes);
  await app.register(healthRoutes, { context });
  await app.register(ogRoutes);
  await app.register(scriptRoutes);
  await app.register(meRoutes, { context });
  await app.register(environmentRoutes, { context });
  await app.register(surveyRoutes, { context });
  await app.register(clientDisplayRoutes, { context });
  await app.register(displayLinkRoutes, { context });
  await app.register(clientResponseRoutes, { context });
  await app.register(managementResponseRoutes, { context });
  await app.register(deliveryRoutes, { context });
  await app.register(contactRoutes, { context });
  await app.register(peopleRoutes, { context });
  await app.register(contactAttributeRoutes, { context });
  await app.register(contactAttributeKeyRoutes, { context });
  await app.register(attributeClassRoutes, { context });
  await app.register(actionClassRoutes, { context });
  await app.register(grantRoutes, { context });
  await app.register(uploadRoutes, { context });
  await app.register(fileRoutes, { context });
  await app.register(webhookRoutes, { context });
  await app.register(loginRoutes, { context });
  await app.register(accountRoutes, { context });
  await app.register(accountPages, { context });
  await app.register(profileRoutes, { context });
  await app.register(apiKeyRoutes, { context });
  await app.register(integrationRoutes, { context });
  await app.register(licenseRoutes, { context });
  await app.register(linkEmailRoutes, { context });
  await app.register(v2AccountRoutes, { context });
  await app.register(v2ResponseRoutes, { context });
  await app.register(v3SurveyRoutes, { context });
  await app.register(v3SmallRoutes, { context });
  await app.register(userRoutes, { context });
  await app.register(legacyUserRoutes, { context });
  await app.register(segmentRoutes, { context });
  await app.register(languageRoutes, { context });
  routes.refuseOtherMethods();
  await app.ready();
  return app;
}
