/**
 * Makes valid requests to every operation of the API: credentials, ids of rows made for this one request, and a body of
 * the documented shape. An operation that is added later is covered by its schema, if that says enough.
 */
import type { Description, Operation, Sent } from './description.ts';
import { sampleOf } from './sample-body.ts';

export interface Request {
  readonly method: string;
  readonly url: string;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  readonly body?: string | Buffer | undefined;
}

export type Send = (request: Request) => Promise<Sent>;
export type Ids = Readonly<Record<string, string>>;
/** @param known the ids of the request */
export type BodyOf = (known: Ids, world: World) => unknown;
/** @param known the ids before this one in the path */
export type IdOf = (known: Ids, world: World) => Promise<string>;

interface WorldOptions {
  readonly send: Send;
  readonly description: Description;
  readonly workspaceId: string;
  readonly apiKey: string;
  /** The `cookie` header of a logged-in person. */
  readonly session: string;
  /** Values of fields by their names, which replace invented ones. */
  readonly known?: Readonly<Record<string, unknown>>;
  /** Bodies and ids that no schema describes, by the name of the operation or of the parameter. */
  readonly bodies?: Readonly<Record<string, BodyOf>>;
  readonly ids?: Readonly<Record<string, IdOf>>;
}

export interface World {
  readonly options: WorldOptions;
  /** Returns headers with the first of the credentials that the operation accepts. */
  credentialsFor(operation: Operation): Record<string, string>;
  /** Creates rows for the parameters of the path. */
  idsFor(operation: Operation): Promise<Ids>;
  bodyFor(operation: Operation, ids: Ids): unknown;
  /** Builds a request that should succeed. The given parts replace its own. */
  requestFor(operation: Operation, ids?: Ids): Promise<Request>;
  urlOf(operation: Operation, ids: Ids, query?: Ids): string;
  unique(): string;
}

const question = { id: 'q1', type: 'openText', headline: { default: 'What?' }, required: false };
const upload = { id: 'file', type: 'fileUpload', headline: { default: 'File' }, required: false };
/** A link survey that accepts responses, files and single-use links. */
export const openSurvey = {
  name: 'Walk',
  type: 'link',
  status: 'inProgress',
  singleUse: { enabled: false, isEncrypted: false },
  questions: [question, { ...upload, allowMultipleFiles: true }],
};
const linkSurvey = { ...openSurvey, singleUse: { enabled: true, isEncrypted: false } };
const pinned = { ...openSurvey, pin: '1234' };
const SINGLE_USE = /singleUseIds$|link-emails$/;

export function createWorld(options: WorldOptions): World {
  const { description, send, workspaceId } = options;
  let count = 0;
  const unique = (): string => {
    count += 1;
    return `walk${count.toString(36)}`;
  };

  const urlOf = ({ path, parameters }: Operation, ids: Ids, query: Ids = {}): string => {
    const filled = path.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(ids[name] ?? 'x'));
    const required = parameters
      .filter((one) => one.in === 'query' && one.required === true)
      .map(({ name }) => [String(name), ids[String(name)] ?? workspaceId] as const);
    const text = new URLSearchParams({ ...Object.fromEntries(required), ...query }).toString();
    return text === '' ? filled : `${filled}?${text}`;
  };

  const credentialsFor = ({ credentials }: Operation): Record<string, string> => {
    if (credentials.includes('apiKey')) return { 'x-api-key': options.apiKey };
    return credentials.includes('session') ? { cookie: options.session } : {};
  };

  const post = async (path: string, body: unknown, as: Record<string, string>): Promise<string> => {
    const reply = await send({ method: 'POST', url: path, headers: as, body: JSON.stringify(body) });
    const id: unknown = reply.status < 300 ? JSON.parse(reply.text).data?.id : undefined;
    if (typeof id !== 'string') throw new Error(`POST ${path} made nothing: ${reply.status} ${reply.text}`);
    return id;
  };

  const surveyFor = ({ path }: Operation): Promise<string> => {
    const survey = SINGLE_USE.test(path) ? linkSurvey : path.endsWith('/pin') ? pinned : openSurvey;
    return post('/api/v1/management/surveys', { workspaceId, ...survey }, { 'x-api-key': options.apiKey });
  };

  /** Returns the id of a row for a parameter of the path, from the operation that creates such rows. */
  const idOf = async (operation: Operation, parameter: string, known: Ids): Promise<string> => {
    const own = options.ids?.[parameter];
    if (own !== undefined) return own(known, world);
    if (parameter === 'surveyId') return surveyFor(operation);
    const collection = operation.path.slice(0, operation.path.indexOf(`/{${parameter}}`));
    const segment = `/${collection.split('/').at(-1)}`;
    const makers = description.operations.filter(
      ({ method, path }) =>
        method === 'POST' && path.startsWith('/api/') && (path === collection || path.endsWith(segment)),
    );
    const maker = makers.find(({ path }) => path === collection) ?? makers[0];
    if (maker === undefined) throw new Error(`Nothing makes the ${parameter} of ${operation.path}`);
    const ids = { ...(await idsFor(maker)), ...known };
    return post(urlOf(maker, ids), bodyFor(maker, ids), credentialsFor(maker));
  };

  const idsFor = async (operation: Operation): Promise<Ids> => {
    const ids: Record<string, string> = {};
    for (const [, name = ''] of operation.path.matchAll(/\{(\w+)\}/g)) {
      ids[name] = await idOf(operation, name, ids);
    }
    const needsSurvey =
      JSON.stringify(operation.body ?? {}).includes('surveyId') || operation.name in refersTo;
    if (needsSurvey && ids.surveyId === undefined) ids.surveyId = await surveyFor(operation);
    return ids;
  };

  /** Bodies whose schema is only a name. */
  const refersTo: Readonly<Record<string, true>> = Object.fromEntries(
    description.operations
      .filter(({ body }) => body !== null && JSON.stringify(withDefinitions(body)).includes('"surveyId"'))
      .map(({ name }) => [name, true]),
  );

  function withDefinitions(body: unknown): unknown {
    const name = /"#\/components\/schemas\/(\w+)"/.exec(JSON.stringify(body))?.[1];
    return name === undefined ? body : description.schemas[name];
  }

  function bodyFor(operation: Operation, ids: Ids): unknown {
    const own = options.bodies?.[operation.name];
    if (own !== undefined) return own(ids, world);
    if (/\/surveys$/.test(operation.path) && operation.path.startsWith('/api/v1')) {
      return { workspaceId, ...openSurvey };
    }
    if (operation.body === null) return undefined;
    const survey = ids.surveyId === undefined ? {} : { surveyId: ids.surveyId };
    const known = { workspaceId, ...options.known, ...survey };
    return sampleOf(operation.body, { schemas: description.schemas, known, unique: unique() });
  }

  const world: World = {
    options,
    credentialsFor,
    idsFor,
    bodyFor,
    urlOf,
    unique,
    async requestFor(operation, given = {}) {
      const ids = { ...(await idsFor(operation)), ...given };
      const body = bodyFor(operation, ids);
      return {
        method: operation.method,
        url: urlOf(operation, ids),
        headers: credentialsFor(operation),
        body: body === undefined ? undefined : JSON.stringify(body),
      };
    },
  };
  return world;
}

/** @returns the `cookie` header of the owner, after a login */
export async function logIn(send: Send): Promise<string> {
  const asked = await send({ method: 'GET', url: '/api/auth/csrf' });
  const { csrfToken } = JSON.parse(asked.text);
  const form = { csrfToken, json: 'true', email: 'owner@example.com', password: 'Password1' };
  const reply = await send({
    method: 'POST',
    url: '/api/auth/callback/credentials',
    headers: { cookie: cookiesOf(asked) },
    body: new URLSearchParams(form).toString(),
  });
  if (reply.status !== 200 || reply.text.includes('error=')) throw new Error(`No login: ${reply.text}`);
  return cookiesOf(reply);
}

export function cookiesOf({ headers }: Sent): string {
  return [headers['set-cookie'] ?? []]
    .flat()
    .map((line) => String(line).split(';')[0])
    .join('; ');
}
