/** Checks that every reply of an API under test has a status that its route declares. */
import { subscribe } from 'node:diagnostics_channel';
import type { FastifyInstance, RouteOptions } from 'fastify';
import { errorResponsesOf } from '#api/docs/error-responses.ts';
import { refusalsOf } from '#api/docs/refusals.ts';
import { surfaceOf } from '#api/surfaces/surfaces.ts';
import { isRecord } from '#api/values/schemas.ts';

let watcher: ((app: FastifyInstance) => void) | null = null;
/** Fastify announces every new app, before anything is registered on it. */
subscribe('fastify.initialization', (message) => {
  if (isRecord(message)) watcher?.(message.fastify as FastifyInstance);
});

/** @returns the result of `build`, and the replies so far whose status their route does not declare */
export async function watchStatuses<T>(
  build: () => Promise<T>,
): Promise<{ readonly built: T; takeProblems(): string[] }> {
  const problems: string[] = [];
  watcher = (app) => watch(app, problems);
  // Apps are created before the first pause, so this one belongs to `build`.
  const building = build();
  watcher = null;
  return { built: await building, takeProblems: () => problems.splice(0) };
}

function watch(app: FastifyInstance, problems: string[]): void {
  const routes = new Map<string, RouteOptions>();
  app.addHook('onRoute', (route) => {
    if (route.schema?.hide === true) return;
    for (const method of [route.method].flat()) routes.set(`${method} ${route.url}`, route);
  });
  // Most tests use few of the routes.
  const known = new Map<string, ReadonlySet<string>>();
  const declared = (method: string, url = ''): ReadonlySet<string> | undefined => {
    const name = `${method} ${url}`;
    const route = method === 'HEAD' ? undefined : routes.get(name);
    if (route !== undefined && !known.has(name)) known.set(name, statusesOf(method, route));
    return known.get(name);
  };
  app.addHook('onSend', async ({ method, routeOptions: { url } }, { statusCode }) => {
    if (declared(method, url)?.has(String(statusCode)) !== false) return;
    problems.push(
      `${method} ${url} was answered ${statusCode}, which it does not declare: name the code in config.refuses of the route, or the status in its response schema`,
    );
  });
}

function statusesOf(method: string, route: RouteOptions): ReadonlySet<string> {
  const surface = surfaceOf(route.url);
  const errors = errorResponsesOf(refusalsOf({ ...route, method }, surface), surface.errorShape, route.url);
  const own = isRecord(route.schema?.response) ? Object.keys(route.schema.response) : [];
  return new Set([...Object.keys(errors), ...own]);
}
