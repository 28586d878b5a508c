/**
 * The description of the admin API (OpenAPI 3.1), generated from the schemas of its routes. Loaded at the first request
 * for it, because the listener itself does not use it.
 */
import type { RouteOptions } from 'fastify';
import { VERSION } from '#shared/version.ts';
import { BYTES_TYPE } from './guard.ts';
import { messageSchema } from './reply-schemas.ts';

type Part = Readonly<Record<string, unknown>>;

interface RouteSchema {
  readonly summary?: string;
  readonly body?: Part;
  readonly querystring?: Part;
  readonly params?: Part;
  readonly response?: Readonly<Record<string, Part>>;
}

interface Config {
  readonly isOpen?: boolean;
  readonly upload?: { readonly description: string } | null;
}

export type DescribedRoute = Pick<RouteOptions, 'method' | 'url' | 'schema' | 'config'>;

const REASONS: Readonly<Record<string, string>> = {
  200: 'Done.',
  204: 'Done, without a body.',
  400: 'The request is wrong; the message says what to write.',
  401: 'The admin token is missing or wrong.',
  403: 'The listener is closed to this caller.',
  404: 'Not found, or already gone.',
  409: 'The maximum is reached.',
  408: 'The body arrived too slowly.',
  413: 'The body is larger than the maximum, which is 64 KiB unless the operation states more.',
  415: 'The body is of another type.',
  429: 'Too many wrong tokens.',
  503: 'The store is unavailable, or there are too many requests.',
};
/** Statuses of the guard's replies. */
const GUARDED = ['401', '403'];
const WITH_BODY = ['400', '413', '415'];

export function openapiOf(routes: readonly DescribedRoute[]): Part {
  const schemas = new Map<string, Part>();
  const refer = (value: unknown): unknown => referred(value, schemas);
  const paths = new Map<string, Record<string, unknown>>();
  for (const { method, url, schema, config } of routes) {
    if (schema === undefined || method === 'HEAD') continue;
    const path = url.replaceAll(/:(\w+)/g, '{$1}');
    const item = paths.get(path) ?? {};
    paths.set(path, item);
    const { isOpen = false, upload = null } = (config ?? {}) as Config;
    item[String(method).toLowerCase()] = operationOf(
      String(method),
      path,
      schema as RouteSchema,
      { isOpen, upload },
      refer,
    );
  }
  return {
    openapi: '3.1.0',
    info: {
      title: 'Floodgate admin API',
      version: VERSION,
      description:
        'Operators use this API to read and change a running gateway. On loopback no token is needed unless one is set; on other addresses a token is required.',
    },
    security: [{ token: [] }, { session: [], proof: [] }],
    paths: Object.fromEntries([...paths].sort(([a], [b]) => a.localeCompare(b))),
    components: {
      securitySchemes: {
        token: { type: 'http', scheme: 'bearer', description: 'GATEWAY_ADMIN_TOKEN' },
        session: { type: 'apiKey', in: 'cookie', name: 'floodgate_session' },
        proof: {
          type: 'apiKey',
          in: 'header',
          name: 'x-floodgate-proof',
          description:
            'The proof of the session from the reply to the sign-in; the cookie alone gives no access',
        },
      },
      schemas: Object.fromEntries([...schemas].sort(([a], [b]) => a.localeCompare(b))),
    },
  };
}

function operationOf(
  method: string,
  path: string,
  { summary, body, querystring, params, response = {} }: RouteSchema,
  { isOpen, upload }: Required<Config>,
  refer: (value: unknown) => unknown,
): Part {
  const errors = [
    ...(isOpen ? ['403'] : GUARDED),
    ...(body === undefined && upload === null ? [] : WITH_BODY),
  ];
  const described = new Set([...Object.keys(response), ...errors]);
  const message = refer(messageSchema);
  const responses = [...described].sort().map((status) => {
    const schema = response[status] ?? null;
    const type = typeof schema?.mediaType === 'string' ? schema.mediaType : 'application/json';
    const { mediaType: _, ...own } = schema ?? {};
    const content = { [type]: { schema: schema === null ? message : refer(own) } };
    return [status, { description: REASONS[status], ...(status === '204' ? {} : { content }) }];
  });
  const parameters = [...parametersOf('path', params), ...parametersOf('query', querystring)];
  return {
    operationId: operationIdOf(method, path),
    summary,
    ...(isOpen ? { security: [] } : {}),
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(body === undefined
      ? {}
      : { requestBody: { required: true, content: { 'application/json': { schema: refer(body) } } } }),
    ...(upload === null ? {} : { requestBody: { required: true, ...upload, content: { [BYTES_TYPE]: {} } } }),
    responses: Object.fromEntries(responses),
  };
}

/** Returns the operation's id: `GET /api/decisions/{id}` becomes getDecisionsId. */
function operationIdOf(method: string, path: string): string {
  const words = path.split(/\W+/).filter((word) => word !== '' && word !== 'api');
  return method.toLowerCase() + words.map((word) => word.charAt(0).toUpperCase() + word.slice(1)).join('');
}

function parametersOf(place: 'path' | 'query', schema: Part | undefined): Part[] {
  const { properties = {}, required = [] } = (schema ?? {}) as { properties?: Part; required?: string[] };
  return Object.entries(properties).map(([name, one]) => {
    const { description, ...rest } = one as Part;
    return {
      name,
      in: place,
      required: required.includes(name),
      ...(description === undefined ? {} : { description }),
      schema: rest,
    };
  });
}

/** Moves schemas with a title to the components. */
function referred(value: unknown, schemas: Map<string, Part>): unknown {
  if (Array.isArray(value)) return value.map((one) => referred(one, schemas));
  if (typeof value !== 'object' || value === null) return value;
  const whole = Object.fromEntries(
    Object.entries(value).map(([key, one]) => [key, referred(one, schemas)] as const),
  );
  if (typeof whole.title !== 'string') return whole;
  const { title, ...rest } = whole;
  schemas.set(String(title), rest);
  return { $ref: `#/components/schemas/${title}` };
}
