/** Parses the OpenAPI document for tests: its operations, and whether a reply conforms to it. */
import { Compile, type Validator } from 'typebox/compile';
import { isRecord } from '#api/values/schemas.ts';

type Part = Readonly<Record<string, unknown>>;

export interface Operation {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** The path in OpenAPI's notation: `/api/v1/management/surveys/{surveyId}`. */
  readonly path: string;
  /** Method and path, such as `GET /health`. */
  readonly name: string;
  readonly whole: Part;
  /** Responses by status, with references resolved. */
  readonly responses: Readonly<Record<string, Part>>;
  /** The security schemes, one of which must identify the caller; empty if the operation is open. */
  readonly credentials: readonly string[];
  readonly parameters: readonly Part[];
  /** The shape of a JSON body; null if there is none, or it is no JSON. */
  readonly body: Part | null;
  /** Media types of its request bodies; empty if it reads none. */
  readonly reads: readonly string[];
}

export interface Sent {
  readonly status: number;
  readonly headers: Readonly<Record<string, unknown>>;
  readonly text: string;
}

export interface Description {
  readonly operations: readonly Operation[];
  readonly schemas: Readonly<Record<string, unknown>>;
  /** Returns the differences between a reply and this operation; empty if there are none. */
  problemsOf(operation: Operation, reply: Sent): readonly string[];
}

export function readDescription(document: Part): Description {
  const components = recordAt(document, 'components');
  const schemas = recordAt(components, 'schemas');
  const responses = recordAt(components, 'responses');
  const definitions = moved(schemas);
  const validators = new Map<string, Validator>();
  const validatorOf = (schema: unknown): Validator => {
    const key = JSON.stringify(schema);
    const known = validators.get(key);
    if (known !== undefined) return known;
    const made = Compile({ ...moved(schema), $defs: definitions });
    validators.set(key, made);
    return made;
  };

  const problemsOfResponse = (response: Part, { headers, status, text }: Sent): readonly string[] => {
    const content = recordAt(response, 'content');
    const type = String(headers['content-type'] ?? '').split(';')[0] ?? '';
    if (Object.keys(content).length === 0) return text === '' ? [] : [`${status} has a body`];
    const isAnyBytes = 'application/octet-stream' in content && text !== '' && !type.includes('json');
    if (isAnyBytes) return [];
    const media = content[type];
    if (!isRecord(media)) return [`${status} is of ${type || 'no type'}, not ${Object.keys(content)}`];
    if (!type.endsWith('json')) return [];
    const errors = validatorOf(media.schema).Errors(JSON.parse(text));
    return [...errors]
      .slice(0, 3)
      .map((error) => `${status} ${JSON.stringify(error)} in ${text.slice(0, 300)}`);
  };

  return {
    schemas,
    operations: Object.entries(recordAt(document, 'paths')).flatMap(([path, item]) =>
      Object.entries(isRecord(item) ? item : {}).map(([method, whole]) =>
        toOperation(method, path, isRecord(whole) ? whole : {}, responses),
      ),
    ),
    problemsOf({ responses }, reply) {
      const { status, text } = reply;
      const response = responses[status] ?? (status < 400 ? undefined : responses.default);
      return response === undefined
        ? [`${status} is not described; there are ${Object.keys(responses)}: ${text.slice(0, 300)}`]
        : problemsOfResponse(response, reply);
    },
  };
}

function toOperation(method: string, path: string, whole: Part, components: Part): Operation {
  const upper = method.toUpperCase() as Operation['method'];
  const responses = Object.entries(recordAt(whole, 'responses')).map(([status, response]) => {
    const reference = isRecord(response) ? response.$ref : undefined;
    const name = typeof reference === 'string' ? (reference.split('/').at(-1) ?? '') : null;
    return [status, name === null ? response : components[name]];
  });
  const security = Array.isArray(whole.security) ? whole.security : [];
  const content = recordAt(recordAt(whole, 'requestBody'), 'content');
  const json = recordAt(content, 'application/json');
  return {
    method: upper,
    path,
    name: `${upper} ${path}`,
    whole,
    responses: Object.fromEntries(responses),
    credentials: security.flatMap((one) => Object.keys(isRecord(one) ? one : {})),
    parameters: Array.isArray(whole.parameters) ? whole.parameters.filter(isRecord) : [],
    body: 'schema' in json ? recordAt(json, 'schema') : null,
    reads: Object.keys(content),
  };
}

/** Returns the schema as a separate document, with references to `$defs`. */
function moved(schema: unknown): Part {
  const text = JSON.stringify(schema, (key, value: unknown) =>
    key === '$ref' && typeof value === 'string' ? value.replace('#/components/schemas/', '#/$defs/') : value,
  );
  return JSON.parse(text);
}

export function recordAt(part: Part, name: string): Part {
  const value = part[name];
  return isRecord(value) ? value : {};
}
