/**
 * Adds the routes of a resource whose rows belong to a workspace. A routes file describes the resource once, and then
 * calls one function for each route of the usual shape. Routes of another shape are written out next to them.
 *
 * The method decides which right such a route needs: GET needs the right to read the workspace of the row, POST and PUT
 * the right to write, DELETE the right to manage. The right to a row is checked before the body is read.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Tables } from '#api/db/schema.ts';
import { notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { type Listed, ListMeta, listQuery, pageFrom, readV2Page } from '#api/http/v2-pagination.ts';
import { Id, type ReplyOf } from '#api/values/schemas.ts';
import { workspaceRow } from './row.ts';
import { loadBodyWorkspace, type WithDatabase, workspaceOf } from './scope.ts';
import type { Workspace } from './store.ts';
import type { Owned, WorkspaceTable } from './table.ts';

/** A row as replies show it, with the word of older clients for its workspace. */
export type Shown<R> = R & { readonly environmentId: string };

/** The maximum number of rows in a page of v1. */
const LIST_MAX = 5_000;

interface Resource<R extends Owned, Reply extends TSchema> {
  /** The path of the list. The path of a row is `url/:param`. */
  readonly url: string;
  readonly param: string;
  /** The name in the message of a 404. */
  readonly type: string;
  readonly rows: Pick<WorkspaceTable<R>, 'find'>;
  /** Whether the rows are in the state of their workspace, so that each write purges it. */
  readonly isInState?: boolean;
  readonly reply: Reply;
  readonly toReplies: (
    rows: readonly Shown<R>[],
  ) => readonly ReplyOf<Reply>[] | Promise<readonly ReplyOf<Reply>[]>;
}

interface Parts extends WithDatabase {
  /** The cached states of workspaces. */
  readonly states: {
    purge(workspaceId: string): void;
  };
}

/** Routes on v1, which look for the row before they check anything else. */
export function v1Resource<R extends Owned, Reply extends TSchema>(
  app: FastifyInstance,
  context: Parts,
  resource: Resource<R, Reply> & { readonly rows: Pick<WorkspaceTable<R>, 'list'> },
) {
  const { db } = context;
  const { url, reply: shape, rows, toReplies } = resource;
  const routes = rowRoutes(app, context, resource, 'v1');

  return {
    ...routes,

    /** @param atOnce see `readPage`; for rows that may be large */
    list(limitMax = LIST_MAX, atOnce?: number): void {
      app.get<{ Querystring: ListQuery }>(
        url,
        { schema: { querystring: ListQuery, response: { 200: Type.Object({ data: Type.Array(shape) }) } } },
        async (request, reply) => {
          const workspaceIds = readableWorkspaces(request);
          const options = { limitMax, ...(atOnce === undefined ? {} : { atOnce }) };
          const found = await readPage({ request, reply }, request.query, options, (page) =>
            rows.list(db, workspaceIds, page),
          );
          return { data: await toReplies(found.map(shown)) };
        },
      );
    },

    /** @param write creates a row in the workspace that the body names */
    create<Body extends TSchema>(
      body: Body,
      write: (body: Static<Body>, workspace: Workspace) => Promise<R>,
    ): void {
      const schema = { body, response: { 200: routes.one } };
      app.post(url, { schema, preValidation: loadBodyWorkspace(context) }, async (request) => {
        const workspace = workspaceOf(request);
        // The schema has already checked the type of the body.
        const made = await write(request.body as Static<Body>, workspace);
        return routes.written(made);
      });
    },
  };
}

/** Routes on v2, which check the shape of an id first, and return 422 for a wrong one. */
export function v2Resource<R extends Owned, Reply extends TSchema>(
  app: FastifyInstance,
  context: Parts,
  resource: Resource<R, Reply>,
) {
  const { db } = context;
  const { url, reply: shape, toReplies } = resource;
  const routes = rowRoutes(app, context, resource, 'v2');

  return {
    ...routes,

    /** @param select returns the query for the rows that match the own parameters of the list */
    list<Query extends TProperties, Table extends keyof Tables>(
      query: Query,
      { findAll }: Pick<WorkspaceTable<R>, 'findAll'>,
      select: (
        query: Static<ReturnType<typeof Type.Object<Query>>>,
        request: FastifyRequest,
      ) => Promise<Listed<Table>>,
    ): void {
      const querystring = Type.Object({ ...listQuery, ...query });
      const response = { 200: Type.Object({ data: Type.Array(shape), meta: ListMeta }) };
      app.get(url, { schema: { querystring, response } }, async (request) => {
        // The schema has already checked the type of the query.
        const page = pageFrom(request.query as Parameters<typeof pageFrom>[0]);
        const listed = await select(request.query as Parameters<typeof select>[0], request);
        const { data, meta } = await readV2Page(listed, page, (ids) => findAll(db, ids));
        return { data: await toReplies(data.map(shown)), meta };
      });
    },

    /** @param write creates the row that the body describes @param made the reply, if it shows more than later ones */
    create<Body extends TSchema>(
      body: Body,
      write: (body: Static<Body>, request: FastifyRequest) => Promise<R>,
      made: TSchema = shape,
    ): void {
      const response = { 201: Type.Object({ data: made }) };
      app.post(url, { schema: { body, response } }, async (request, reply) =>
        // The schema has already checked the type of the body.
        reply.code(201).send(await routes.written(await write(request.body as Static<Body>, request))),
      );
    },
  };
}

function rowRoutes<R extends Owned, Reply extends TSchema>(
  app: FastifyInstance,
  context: Parts,
  { url, param, type, rows: { find }, isInState = false, reply: shape, toReplies }: Resource<R, Reply>,
  version: 'v1' | 'v2',
) {
  const { db, states } = context;
  const oneUrl = `${url}/:${param}`;
  const params = Type.Object({ [param]: version === 'v1' ? Type.String() : Id });
  const one = Type.Object({ data: shape });
  const response = { 200: one };
  const rows = workspaceRow({ db, type, param, find });
  const loading = version === 'v1' ? { onRequest: rows.load } : { preHandler: rows.load };

  async function show(row: R): Promise<{ data: ReplyOf<Reply> }> {
    const [data] = await toReplies([shown(row)]);
    if (data === undefined) throw new Error(`There is no reply for a row of the type ${type}`);
    return { data };
  }

  function written(row: R): Promise<{ data: ReplyOf<Reply> }> {
    if (isInState) states.purge(row.workspaceId);
    return show(row);
  }

  return {
    /** The schema of a reply with one row. */
    one,
    /** Replies with a row that was created, changed or deleted. */
    written,

    read(): void {
      app.get(oneUrl, { schema: { params, response }, ...loading }, async (request) =>
        show(rows.of(request)),
      );
    },

    /** @param namesWorkspace whether the body must name a workspace too, as that of a new row does */
    change<Body extends TSchema>(
      body: Body,
      write: (body: Static<Body>, stored: R, request: FastifyRequest) => Promise<R>,
      namesWorkspace = false,
    ): void {
      const hooks = namesWorkspace ? { ...loading, preValidation: loadBodyWorkspace(context) } : loading;
      app.put(oneUrl, { schema: { params, body, response }, ...hooks }, async (request) => {
        const stored = rows.of(request);
        // The schema has already checked the type of the body.
        return written(await write(request.body as Static<Body>, stored, request));
      });
    },

    /** @param write deletes the row, and returns false if it was gone */
    remove(write: (stored: R, request: FastifyRequest) => Promise<boolean>): void {
      app.delete(oneUrl, { schema: { params, response }, ...loading }, async (request) => {
        const stored = rows.of(request);
        if (!(await write(stored, request))) throw notFound(type, stored.id);
        return written(stored);
      });
    },

    /** Adds a DELETE route that replies with a message instead of the row. */
    removeWithMessage(success: string, write: (stored: R) => Promise<boolean>): void {
      const message = Type.Object({ data: Type.Object({ success: Type.String() }) });
      app.delete(oneUrl, { schema: { params, response: { 200: message } }, ...loading }, async (request) => {
        const stored = rows.of(request);
        if (!(await write(stored))) throw notFound(type, stored.id);
        return { data: { success } };
      });
    },
  };
}

function shown<R extends Owned>(row: R): Shown<R> {
  return { ...row, environmentId: row.workspaceId };
}
