/**
 * Adds the routes of a resource whose rows belong to a workspace. A routes file describes the resource once, and then
 * calls one function for each route of the usual shape. Routes of another shape are written out next to them.
 *
 * The method decides which right such a route needs: GET needs the right to read the workspace of the row, POST and PUT
 * the right to write, DELETE the right to manage. The right to a row is checked before the body is read.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, type TSchema, Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Database } from '#api/db/schema.ts';
import type { Code, ResourceType } from '#api/errors.ts';
import { type ListPage, ListQuery, readPage } from '#api/http/pagination.ts';
import { Id, type ReplyOf } from '#api/schemas.ts';
import { findShown, workspaceRow } from './row.ts';
import { loadBodyWorkspace, type WithDatabase, workspaceOf } from './scope.ts';
import { type Shown, type Workspace, withEnvironmentIds } from './store.ts';

interface Row {
  readonly id: string;
  readonly workspaceId: string;
}

interface Resource<R extends Row, Reply extends TSchema> {
  /** The path of the list. The path of a row is `url/:param`. */
  readonly url: string;
  readonly param: string;
  /** The name in the message of a 404. */
  readonly type: ResourceType;
  readonly find: (db: Database, id: string) => Promise<R | null>;
  readonly reply: Reply;
  readonly toReplies: (
    rows: readonly Shown<R>[],
  ) => readonly ReplyOf<Reply>[] | Promise<readonly ReplyOf<Reply>[]>;
}

/** The errors of the route's own code, see `config.refuses`. */
interface Refusing {
  readonly refuses?: readonly Code[];
}

/** Routes on v1, which look for the row before they check anything else. */
export function v1Resource<R extends Row, Reply extends TSchema>(
  app: FastifyInstance,
  context: WithDatabase,
  resource: Resource<R, Reply>,
) {
  const { db } = context;
  const { url, reply: shape, toReplies } = resource;
  const routes = rowRoutes(app, context, resource, 'v1');

  return {
    ...routes,

    /** @param list must have a total order */
    list(
      limitMax: number,
      list: (db: Database, workspaceIds: readonly string[], page: ListPage) => Promise<readonly R[]>,
    ): void {
      app.get<{ Querystring: ListQuery }>(
        url,
        { schema: { querystring: ListQuery, response: { 200: Type.Object({ data: Type.Array(shape) }) } } },
        async (request, reply) => {
          const workspaceIds = readableWorkspaces(request);
          const found = await readPage({ request, reply }, request.query, { limitMax }, (page) =>
            list(db, workspaceIds, page),
          );
          return { data: await toReplies(await withEnvironmentIds(db, found)) };
        },
      );
    },

    /** @param write creates a row in the workspace that the body names */
    create<Body extends TSchema>(
      { body, ...config }: Refusing & { readonly body: Body },
      write: (body: Static<Body>, workspace: Workspace) => Promise<R>,
    ): void {
      app.post(
        url,
        {
          schema: { body, response: { 200: routes.one } },
          config,
          preValidation: loadBodyWorkspace(context),
        },
        async (request) => {
          const workspace = workspaceOf(request);
          // The schema has already checked the type of the body.
          const made = await write(request.body as Static<Body>, workspace);
          return routes.show({ ...made, environmentId: workspace.environmentId });
        },
      );
    },
  };
}

/** Routes on v2, which check the shape of an id first, and return 422 for a wrong one. */
export function v2Resource<R extends Row, Reply extends TSchema>(
  app: FastifyInstance,
  context: WithDatabase,
  resource: Resource<R, Reply>,
) {
  return rowRoutes(app, context, resource, 'v2');
}

function rowRoutes<R extends Row, Reply extends TSchema>(
  app: FastifyInstance,
  { db }: WithDatabase,
  { url, param, type, find, reply: shape, toReplies }: Resource<R, Reply>,
  version: 'v1' | 'v2',
) {
  const oneUrl = `${url}/:${param}`;
  const params = Type.Object({ [param]: version === 'v1' ? Type.String() : Id });
  const one = Type.Object({ data: shape });
  const response = { 200: one };
  const rows = workspaceRow({ db, type, param, find: findShown(find) });
  const loading = version === 'v1' ? { onRequest: rows.load } : { preHandler: rows.load };

  async function show(row: Shown<R>): Promise<{ data: ReplyOf<Reply> }> {
    const [data] = await toReplies([row]);
    if (data === undefined) throw new Error(`There is no reply for a row of the type ${type}`);
    return { data };
  }

  return {
    /** The schema of a reply with one row. */
    one,
    rows,
    show,

    read(): void {
      app.get(oneUrl, { schema: { params, response }, ...loading }, async (request) =>
        show(rows.of(request)),
      );
    },

    change<Body extends TSchema>(
      { body, ...config }: Refusing & { readonly body: Body },
      write: (body: Static<Body>, stored: Shown<R>, request: FastifyRequest) => Promise<R>,
    ): void {
      app.put(oneUrl, { schema: { params, body, response }, config, ...loading }, async (request) => {
        const stored = rows.of(request);
        // The schema has already checked the type of the body.
        const changed = await write(request.body as Static<Body>, stored, request);
        return show({ ...changed, environmentId: stored.environmentId });
      });
    },

    remove(config: Refusing, write: (stored: Shown<R>, request: FastifyRequest) => Promise<void>): void {
      app.delete(oneUrl, { schema: { params, response }, config, ...loading }, async (request) => {
        const stored = rows.of(request);
        await write(stored, request);
        return show(stored);
      });
    },

    /** Adds a DELETE route that replies with a message instead of the row. */
    removeWithMessage(success: string, write: (stored: Shown<R>) => Promise<void>): void {
      const message = Type.Object({ data: Type.Object({ success: Type.String() }) });
      app.delete(oneUrl, { schema: { params, response: { 200: message } }, ...loading }, async (request) => {
        await write(rows.of(request));
        return { data: { success } };
      });
    },
  };
}
