/** Action classes on the management API. Needs a key; rights go by method. */
import type { Kysely } from 'kysely';
import { Type } from 'typebox';
import { principalOf } from '#api/auth/plugin.ts';
import { workspacesWith } from '#api/auth/principal.ts';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, badRequest, conflict, forbidden, notFound } from '#api/errors.ts';
import { ListQuery, readPage } from '#api/http/pagination.ts';
import { newId } from '#api/ids.ts';
import { workspaceRow } from '#api/resources/workspaces/row.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { withEnvironmentIds } from '#api/resources/workspaces/store.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { readActionClass } from './content.ts';
import { ActionClassBody, ActionClassReply } from './schema.ts';
import {
  type ActionClass,
  countActionClasses,
  deleteActionClass,
  findActionClass,
  findTaken,
  insertActionClass,
  listActionClassesOf,
  updateActionClass,
} from './store.ts';

/** Of one workspace: SDKs download them all. */
const ACTION_CLASSES_MAX = 500;

const LIST_MAX = 5_000;

const Params = Type.Object({ actionClassId: Type.String() });
const one = { 200: Type.Object({ data: ActionClassReply }) };

export const actionClassRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const url = '/api/v1/management/action-classes';
  const oneUrl = `${url}/:actionClassId`;
  const actionClasses = workspaceRow({
    db,
    type: 'Action Class',
    param: 'actionClassId',
    find: findActionClass,
  });

  app.get(
    url,
    {
      schema: {
        querystring: ListQuery,
        response: { 200: Type.Object({ data: Type.Array(ActionClassReply) }) },
      },
    },
    async (request, reply) => {
      const workspaceIds = workspacesWith(principalOf(request), 'read');
      const found = await readPage({ request, reply }, request.query, { limitMax: LIST_MAX }, (page) =>
        listActionClassesOf(db, workspaceIds, page),
      );
      return { data: [...(await withEnvironmentIds(db, found))] };
    },
  );

  app.post(
    url,
    {
      schema: { body: ActionClassBody, response: one },
      config: { refuses: ['forbidden', 'conflict'] },
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const { id: workspaceId, environmentId } = workspaceOf(request);
      const now = toTimestamp(clock());
      const made: ActionClass = {
        ...readActionClass(request.body),
        id: newId(random),
        workspaceId,
        createdAt: now,
        updatedAt: now,
      };
      await storing(made, async (trx) => {
        if ((await countActionClasses(trx, workspaceId)) >= ACTION_CLASSES_MAX) {
          throw forbidden(
            `A workspace can have ${ACTION_CLASSES_MAX} action classes; delete one that is not used`,
          );
        }
        await insertActionClass(trx, made);
      });
      states.purge({ workspaceId, environmentId });
      return { data: { ...made, environmentId } };
    },
  );

  app.get(
    oneUrl,
    { schema: { params: Params, response: one }, onRequest: actionClasses.load },
    async (request) => ({ data: actionClasses.of(request) }),
  );

  app.put(
    oneUrl,
    {
      schema: { params: Params, body: ActionClassBody, response: one },
      config: { refuses: ['conflict'] },
      onRequest: actionClasses.load,
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const stored = actionClasses.of(request);
      const { id, workspaceId, environmentId, createdAt } = stored;
      if (workspaceOf(request).id !== workspaceId) {
        throw badRequest('Action class is part of another workspace', { workspaceId });
      }
      if (stored.type === 'automatic') throw badRequest('Automatic action classes cannot be updated');
      const changed: ActionClass = {
        ...readActionClass(request.body),
        id,
        workspaceId,
        createdAt,
        updatedAt: toTimestamp(clock()),
      };
      await storing(changed, async (trx) => {
        if (!(await updateActionClass(trx, changed))) throw notFound('Action Class', id);
      });
      states.purge(stored);
      return { data: { ...changed, environmentId } };
    },
  );

  app.delete(
    oneUrl,
    {
      schema: { params: Params, response: one },
      config: { refuses: ['bad_request'] },
      onRequest: actionClasses.load,
    },
    async (request) => {
      const stored = actionClasses.of(request);
      if (stored.type === 'automatic') throw badRequest('Automatic action classes cannot be deleted');
      await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', stored.workspaceId);
        await deleteActionClass(trx, stored.id);
      });
      states.purge(stored);
      return { data: stored };
    },
  );

  /** Runs a write in a transaction, unless the name or the key is taken. */
  async function storing(
    actionClass: ActionClass,
    write: (trx: Kysely<Database>) => Promise<void>,
  ): Promise<void> {
    try {
      await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', actionClass.workspaceId);
        const taken = await findTaken(trx, actionClass);
        if (taken !== null) throw alreadyExists(actionClass, taken);
        await write(trx);
      });
    } catch (error) {
      for (const column of ['name', 'key'] as const) {
        if (isUniqueViolation(error, 'actionClasses.workspaceId', `actionClasses.${column}`)) {
          throw alreadyExists(actionClass, column);
        }
      }
      throw error;
    }
  }
};

function alreadyExists(actionClass: ActionClass, taken: 'name' | 'key'): ApiError {
  return conflict(`Action with ${taken} ${actionClass[taken]} already exists`);
}
