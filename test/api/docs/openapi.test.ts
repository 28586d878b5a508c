/** The description has exactly the routes of the API. */
import { subscribe } from 'node:diagnostics_channel';
import type { FastifyInstance } from 'fastify';
import t from 'tap';
import { isRecord } from '#api/values/schemas.ts';
import { apiKey, startApi } from '#test/support/api-app.ts';

interface Route {
  readonly method: string;
  readonly url: string;
  readonly isHidden: boolean;
}

/** Fastify announces every new app, before anything is registered on it. */
const routes: Route[] = [];
subscribe('fastify.initialization', (message) => {
  if (!isRecord(message)) return;
  const app = message.fastify as FastifyInstance;
  app.addHook('onRoute', (route) => {
    for (const method of [route.method].flat()) {
      routes.push({ method, url: route.url, isHidden: route.schema?.hide === true });
    }
  });
});

const api = await startApi(t);
const reply = await api.client('GET', '/api/docs/openapi.json');
const document = reply.json;

const documented = Object.entries<Record<string, Record<string, unknown>>>(document.paths).flatMap(
  ([path, item]) =>
    Object.entries(item).map(([method, operation]) => ({ method: method.toUpperCase(), path, operation })),
);
/** Returns the path as the router writes it. */
const routeOf = (path: string): string => path.replace('{fileName}', '*').replace(/\{(\w+)\}/g, ':$1');

t.test('200: OpenAPI 3.1 as JSON, readable from every origin', async (t) => {
  t.equal(reply.status, 200);
  t.equal(document.openapi, '3.1.0');
  t.equal(reply.headers['access-control-allow-origin'], '*');
  for (const path of ['/api/docs', '/api/docs/'])
    t.equal((await api.client('GET', path)).text, reply.text, 'the address that people remember has it too');
});

t.test('every described operation exists', (t) => {
  t.ok(documented.length > 60);
  for (const { method, path } of documented) {
    t.ok(api.app.hasRoute({ method: method as 'GET', url: routeOf(path) }), `${method} ${path}`);
  }
  t.end();
});

t.test(
  'every route is described, except preflights, pages, 405 routes and the description itself',
  async (t) => {
    const described = new Set(documented.map(({ method, path }) => `${method} ${routeOf(path)}`));
    for (const { isHidden, method, url } of routes) {
      // Fastify answers HEAD wherever there is GET.
      if (method === 'HEAD' || method === 'OPTIONS' || url.startsWith('/api/docs')) continue;
      if (!isHidden) {
        t.ok(described.has(`${method} ${url}`), `${method} ${url} is described`);
        continue;
      }
      const { status, headers } = await api.client(method as 'GET', url.replace(/[:*]\w*/g, 'x'), undefined, {
        accept: 'text/html',
        'x-api-key': apiKey,
      });
      const isPage =
        status === 302 || status === 303 || String(headers['content-type']).startsWith('text/html');
      t.ok(isPage || status === 405, `${method} ${url} is hidden because it is a page, or only refuses`);
    }
  },
);

t.test('each operation has a unique id, its credentials and its replies', (t) => {
  const ids = documented.map(({ operation }) => operation.operationId);
  t.equal(new Set(ids).size, ids.length);
  for (const { method, operation, path } of documented) {
    const { responses, security } = operation;
    t.ok(isRecord(responses) && Object.keys(responses).length > 1, `${method} ${path}`);
    const isManaged = /^\/api\/v1\/(management|webhooks|me|surveys|responses)/.test(path);
    if (isManaged) t.match(security, [{ apiKey: [] }], `${path} needs a key`);
    if (path.includes('/client/')) t.strictSame(security, [], `${path} needs no credentials`);
    for (const [, name] of path.matchAll(/\{(\w+)\}/g)) {
      t.match(JSON.stringify(operation.parameters), `"name":"${name}"`, `${path} describes ${name}`);
    }
  }
  t.end();
});

t.test('every success has a description and a schema of its body', (t) => {
  for (const { method, operation, path } of documented) {
    for (const [status, response] of Object.entries(
      isRecord(operation.responses) ? operation.responses : {},
    )) {
      if (!isRecord(response) || !status.startsWith('2') || status === '204') continue;
      const [media] = Object.values(isRecord(response.content) ? response.content : {});
      t.ok(
        isRecord(media) && isRecord(media.schema),
        `${method} ${path} ${status}: give it a response schema`,
      );
    }
  }
  t.end();
});
