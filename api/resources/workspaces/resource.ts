/**
 * Adds the routes of a resource whose rows belong to a workspace, on v1 or on v2. A routes file describes the resource
 * once, and then calls one function for each route of the usual shape. Routes of another shape are written out next to
 * them.
 *
 * The method decides which right such a route needs: GET needs the right to read the workspace of the row, POST and PUT
 * the right to write, DELETE the right to manage. The right to a row is checked before the body is read.
 */
import type { FastifyInstance, FastifyRequest } from 'fastify';
import type { SelectQueryBuilder } from 'kysely';
import { type Static, type TProperties, type TSchema, Type } from 'typebox';
import { readableWorkspaces } from '#api/auth/plugin.ts';
import type { Tables } from '#api/db/schema.ts';
import { notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { ListMeta, listQuery, readV2Page } from '#api/http/v2-pagination.ts';
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
  /** v2 checks the shape of an id first, with 422 for a wrong one; v1 looks for the row before it checks anything else. */
  readonly version: 'v1' | 'v2';
  /** The path of the list. The path of a row is `url/:param`. */
  readonly url: string;
  readonly param: string;
  /** The name in the message of a 404. */
  readonly type: string;
  readonly rows: Pick<WorkspaceTable<R>, 'find' | 'list'>;
  /** Whether a body may leave out its workspace, if the caller's key has only one. */
  readonly isWorkspaceOptional?: boolean;
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

export function workspaceResource<R extends Owned, Reply extends TSchema>(
  app: FastifyInstance,
  context: Parts,
  resource: Resource<R, Reply>,
) {
  const { db } = context;
  const { version, url, rows, reply: shape, toReplies } = resource;
  const routes = rowRoutes(app, context, resource);
  const loadWorkspace = loadBodyWorkspace(context, resource);

  return {
    ...routes,

    /** Adds the list of v1. @param atOnce see `readPage`; for rows that may be large */
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

    /** Adds the list of v2. @param select returns the query for the rows that match the own parameters of the list */
    listPages<Query extends TProperties, Table extends keyof Tables>(
      query: Query,
      { findAll }: Pick<WorkspaceTable<R>, 'findAll'>,
      select: (
        query: Static<ReturnType<typeof Type.Object<Query>>>,
        request: FastifyRequest,
      ) => Promise<SelectQueryBuilder<Tables, Table, unknown>>,
    ): void {
      const querystring = Type.Object({ ...listQuery, ...query });
      const pages = { 200: Type.Object({ data: Type.Array(shape), meta: ListMeta }) };
      app.get(url, { schema: { querystring, response: pages } }, async (request) => {
        // The schema has already checked the type of the query.
        const page = request.query as Parameters<typeof readV2Page>[0];
        const listed = await select(request.query as Parameters<typeof select>[0], request);
        const { data, meta } = await readV2Page(page, listed, (ids) => findAll(db, ids));
        return { data: await toReplies(data.map(shown)), meta };
      });
    },

    /**
     * @param write creates a row in the workspace that the body names
     * @param made the reply, if it shows more than later ones
     */
    create<Body extends TSchema>(
      body: Body,
      write: (body: Static<Body>, workspace: Workspace) => Promise<R>,
      made: TSchema = shape,
    ): void {
      const status = version === 'v1' ? 200 : 201;
      const schema = { body, response: { [status]: Type.Object({ data: made }) } };
      const hook = version === 'v1' ? { preValidation: loadWorkspace } : { preHandler: loadWorkspace };
      app.post(url, { schema, ...hook }, async (request, reply) => {
        const workspace = workspaceOf(request);
        // The schema has already checked the type of the body.
        const created = await write(request.body as Static<Body>, workspace);
        return reply.code(status).send(await routes.written(created));
      });
    },
  };
}

function rowRoutes<R extends Owned, Reply extends TSchema>(
  app: FastifyInstance,
  context: Parts,
  resource: Resource<R, Reply>,
) {
  const { db, states } = context;
  const { version, url, param, type, rows, isInState = false, reply: shape, toReplies } = resource;
  const isV1 = version === 'v1';
  const oneUrl = `${url}/:${param}`;
  const params = Type.Object({ [param]: isV1 ? Type.String() : Id });
  const one = Type.Object({ data: shape });
  const response = { 200: one };
  const row = workspaceRow({ db, type, param, find: rows.find });
  const loading = isV1 ? { onRequest: row.load } : { preHandler: row.load };

  async function show(one: R): Promise<{ data: ReplyOf<Reply> }> {
    const [data] = await toReplies([shown(one)]);
    if (data === undefined) throw new Error(`There is no reply for a row of the type ${type}`);
    return { data };
  }

  function written(one: R): Promise<{ data: ReplyOf<Reply> }> {
    if (isInState) states.purge(one.workspaceId);
    return show(one);
  }

  return {
    /** The schema of a reply with one row. */
    one,
    /** Replies with a row that was created, changed or deleted. */
    written,

    read(): void {
      app.get(oneUrl, { schema: { params, response }, ...loading }, async (request) => show(row.of(request)));
    },

    change<Body extends TSchema>(
      body: Body,
      write: (body: Static<Body>, stored: R, request: FastifyRequest) => Promise<R>,
    ): void {
      app.put(oneUrl, { schema: { params, body, response }, ...loading }, async (request) => {
        const stored = row.of(request);
        // The schema has already checked the type of the body.
        return written(await write(request.body as Static<Body>, stored, request));
      });
    },

    /**
     * @param write deletes the row, and returns false if it was gone
     * @param success what the reply says instead of showing the row
     */
    remove(
      write: (stored: R, request: FastifyRequest) => Promise<boolean>,
      success: string | null = null,
    ): void {
      const message = Type.Object({ data: Type.Object({ success: Type.String() }) });
      const schema = { params, response: success === null ? response : { 200: message } };
      app.delete(oneUrl, { schema, ...loading }, async (request) => {
        const stored = row.of(request);
        if (!(await write(stored, request))) throw notFound(type, stored.id);
        return success === null ? written(stored) : { data: { success } };
      });
    },
  };
}

function shown<R extends Owned>(row: R): Shown<R> {
  return { ...row, environmentId: row.workspaceId };
}
