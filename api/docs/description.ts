/** Builds the description with @fastify/swagger. Loaded with its first reader: a start needs none of this. */
import fastifySwagger from '@fastify/swagger';
import fastify, { type RouteOptions } from 'fastify';
import { completed, documentOf } from './document.ts';
import { describeRoute } from './route.ts';

/**
 * The plugin watches routes being added, so they are added to an application that nobody calls.
 *
 * @param routes all routes of the API, as they were added
 */
export async function describeRoutes(publicUrl: string, routes: readonly RouteOptions[]): Promise<object> {
  const app = fastify({ exposeHeadRoutes: false });
  app.setValidatorCompiler(() => () => true);
  app.setSerializerCompiler(() => () => '');
  await app.register(fastifySwagger, {
    openapi: documentOf(publicUrl),
    stripBasePath: false,
    transform: describeRoute,
    transformObject: (built) =>
      'openapiObject' in built ? completed(built.openapiObject) : built.swaggerObject,
  });
  for (const route of routes) app.route({ ...route, exposeHeadRoute: false });
  await app.ready();
  const description = app.swagger();
  await app.close();
  return description;
}
