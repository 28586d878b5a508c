/** What the schemas of routes do not say: words, errors, examples, names. Completes what @fastify/swagger built. */
import { isRecord } from '#api/schemas.ts';
import { namedShapes } from './components.ts';
import { type ErrorResponse, errorResponsesOf } from './error-responses.ts';
import { exampleOf } from './examples.ts';
import { createNamer, type Namer } from './named-schemas.ts';
import { namesOf } from './operation-names.ts';
import { rawOperations } from './raw-responses.ts';
import { type FindSurface, REST, securitySchemes } from './route.ts';

/** Bodies that a route reads by hand, by operation. */
const bodyNames: Readonly<Record<string, string>> = {
  'POST /api/v1/management/surveys': 'NewSurvey',
  'PUT /api/v1/management/surveys/{surveyId}': 'SurveyChange',
  'POST /api/v1/surveys': 'NewSurvey',
  'PUT /api/v1/surveys/{surveyId}': 'SurveyChange',
};

/** Paths that exist to say that there is nothing. */
const REFUSED_ONLY = /^\/(js|api\/packages)\//;

type Part = Record<string, unknown>;

export function documentOf(publicUrl: string) {
  return {
    openapi: '3.1.0' as const,
    info: {
      title: 'Floodgate API',
      version: '1.0.0',
      description: [
        'Surveys and feedback: the client API for SDKs, which asks for no key, and the management API.',
        'Replies of v1 wrap their payload in `data`. Ids are opaque; timestamps are ISO 8601 in UTC.',
        'Wherever a workspace id is asked for, an environment id of older clients is understood too.',
        'Limits: the gateway answers 429 with `x-gateway-ratelimited`; the application answers 429 as shown here.',
      ].join('\n\n'),
    },
    servers: [{ url: publicUrl }],
    components: { securitySchemes },
  };
}

/** @param built the document with paths, parameters, bodies and successes */
export function completed(built: object, findSurface: FindSurface): Part {
  const document: Part = { ...built };
  const namer = createNamer(namedShapes);
  const paths = recordAt(document, 'paths');
  const tags = new Set<string>();
  const finished = Object.entries(paths).map(([path, item]) => [
    path,
    Object.fromEntries(
      operationsOf(item).map(([method, operation]) => {
        const done = operationOf(method.toUpperCase(), path, isRecord(operation) ? operation : {}, {
          namer,
          findSurface,
        });
        tags.add(done.tags[0]);
        return [method, done];
      }),
    ),
  ]);
  return withoutSharing({
    ...document,
    tags: [...tags].sort().map((name) => ({ name })),
    paths: Object.fromEntries(finished),
    components: { ...recordAt(document, 'components'), schemas: namer.components() },
  });
}

/** YAML writes what occurs twice as an alias, and readers refuse a document with hundreds of them. */
function withoutSharing(document: Part): Part {
  return JSON.parse(JSON.stringify(document));
}

/** What answers HEAD is what answers GET, and OPTIONS are preflights: neither is an operation of its own. */
function operationsOf(item: unknown): readonly [string, unknown][] {
  return Object.entries(isRecord(item) ? item : {}).filter(
    ([method]) => method !== 'head' && method !== 'options',
  );
}

function operationOf(
  method: string,
  path: string,
  built: Part,
  { namer, findSurface }: { readonly namer: Namer; readonly findSurface: FindSurface },
): Part & { tags: [string] } {
  const { operationId, summary, tag } = namesOf(method, path);
  const example = exampleOf(method, path);
  const parameters = parametersOf(built.parameters, namer);
  const security = Array.isArray(built.security) ? built.security : [];
  const errors = errorResponsesOf(method, path, {
    surface: findSurface(path),
    isAuthenticated: security.length > 0,
    hasParameters: parameters.length > 0,
  });
  const raw = rawOperations[`${method} ${path}`];
  const requestBody =
    raw?.requestBody ?? bodyOf(`${method} ${path}`, built.requestBody, namer, example?.request);
  return {
    operationId,
    summary,
    tags: [tag],
    security,
    ...(parameters.length === 0 ? {} : { parameters }),
    ...(requestBody === null ? {} : { requestBody }),
    responses: {
      ...(raw?.isAlone === true ? {} : errorReplies(errors)),
      ...(REFUSED_ONLY.test(path)
        ? {}
        : successesOf(raw?.responses ?? recordAt(built, 'responses'), namer, example?.reply)),
    },
  };
}

function errorReplies(errors: readonly ErrorResponse[]): Part {
  return Object.fromEntries(
    errors.map(({ contentType, description, example, schema, status }) => [
      status,
      {
        description,
        content: { [contentType]: { schema: { $ref: `#/components/schemas/${schema}` }, example } },
      },
    ]),
  );
}

function parametersOf(built: unknown, namer: Namer): readonly Part[] {
  const all = Array.isArray(built) ? built.map((one) => withSchema(one, namer)) : [];
  // A schema that knows the rest of a path calls it `*`; the renamed path brings a second one without words.
  const knowsRest = all.some(({ name }) => name === '*');
  const known = knowsRest ? all.filter(({ name }) => name !== REST) : all;
  return known.map((one) => (one.name === '*' ? { ...one, name: REST } : one));
}

function bodyOf(operation: string, built: unknown, namer: Namer, example: unknown): Part | null {
  const name = bodyNames[operation];
  const shown = example === undefined ? {} : { example };
  if (name !== undefined) {
    const schema = { $ref: `#/components/schemas/${name}` };
    return { required: true, content: { 'application/json': { schema, ...shown } } };
  }
  if (!isRecord(built)) return null;
  return { ...built, content: contentOf(recordAt(built, 'content'), namer, example) };
}

function successesOf(built: Part, namer: Namer, example: unknown): Part {
  // A second success says that something is missing, so its body is another one.
  const shownWith = Object.keys(built)
    .sort()
    .find((status) => status.startsWith('2'));
  return Object.fromEntries(
    Object.entries(built).map(([status, response]) => {
      const part = isRecord(response) ? response : {};
      const content = isRecord(part.content)
        ? { content: contentOf(part.content, namer, status === shownWith ? example : undefined) }
        : {};
      const described = part.description === 'Default Response' ? 'Done.' : part.description;
      return [status, { ...part, description: described, ...content }];
    }),
  );
}

function contentOf(content: Part, namer: Namer, example: unknown): Part {
  return Object.fromEntries(
    Object.entries(content).map(([type, media]) => [
      type,
      { ...withSchema(media, namer), ...(example === undefined ? {} : { example }) },
    ]),
  );
}

function withSchema(part: unknown, namer: Namer): Part {
  if (!isRecord(part)) return {};
  return 'schema' in part ? { ...part, schema: namer.refer(part.schema) } : part;
}

function recordAt(part: Part, name: string): Part {
  const value = part[name];
  return isRecord(value) ? value : {};
}
