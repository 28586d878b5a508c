/**
 * Action classes on v1, and a list of them on v3.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import { ACTION_CLASSES_BYTES_MAX } from '#api/content-limits.ts';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, badRequest, conflict, forbidden, notFound } from '#api/errors.ts';
import { newId } from '#api/ids.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { loadBodyWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { v3List } from '#api/resources/workspaces/v3-list.ts';
import { TextOrNull } from '#api/schemas.ts';
import { toTimestamp } from '#api/timestamps.ts';
import { readActionClass } from './content.ts';
import { ActionClassBody, ActionClassReply } from './schema.ts';
import {
  type ActionClass,
  configBytes,
  countActionClasses,
  deleteActionClass,
  findActionClass,
  findTaken,
  insertActionClass,
  listActionClassesOf,
  updateActionClass,
} from './store.ts';

/** Maximum number in a workspace, because SDKs download them all. */
const ACTION_CLASSES_MAX = 500;

const TOO_LARGE = `The noCodeConfig of all action classes of a workspace may take ${ACTION_CLASSES_BYTES_MAX} bytes; delete one that is not used`;

const LIST_MAX = 5_000;

const V3ActionClass = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: TextOrNull,
  type: Type.String(),
  key: TextOrNull,
});

export const actionClassRoutes: Routes = async (app, { context }) => {
  const { db, clock, random, states } = context;
  const actionClasses = v1Resource(app, context, {
    url: '/api/v1/management/action-classes',
    param: 'actionClassId',
    type: 'Action Class',
    find: findActionClass,
    reply: ActionClassReply,
    toReplies: (found) => found,
  });

  actionClasses.list(LIST_MAX, listActionClassesOf);

  actionClasses.create(
    { body: ActionClassBody, refuses: ['forbidden', 'conflict'] },
    async (body, { id: workspaceId, environmentId }) => {
      const now = toTimestamp(clock());
      const made: ActionClass = {
        ...readActionClass(body),
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
      return made;
    },
  );

  actionClasses.read();

  // The body contains the workspace too, which must be the same.
  app.put(
    '/api/v1/management/action-classes/:actionClassId',
    {
      schema: {
        params: Type.Object({ actionClassId: Type.String() }),
        body: ActionClassBody,
        response: { 200: actionClasses.one },
      },
      config: { refuses: ['forbidden', 'conflict'] },
      onRequest: actionClasses.rows.load,
      preValidation: loadBodyWorkspace(context),
    },
    async (request) => {
      const stored = actionClasses.rows.of(request);
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

  actionClasses.remove({ refuses: ['bad_request'] }, async (stored) => {
    if (stored.type === 'automatic') throw badRequest('Automatic action classes cannot be deleted');
    await db.transaction().execute(async (trx) => {
      await lockRow(trx, 'workspaces', stored.workspaceId);
      await deleteActionClass(trx, stored.id);
    });
    states.purge(stored);
  });

  /** Runs a write in a transaction, unless the name or the key is taken. */
  async function storing(actionClass: ActionClass, write: (trx: Database) => Promise<void>): Promise<void> {
    try {
      await db.transaction().execute(async (trx) => {
        await lockRow(trx, 'workspaces', actionClass.workspaceId);
        const taken = await findTaken(trx, actionClass);
        if (taken !== null) throw alreadyExists(actionClass, taken);
        const before = await configBytes(trx, actionClass.workspaceId);
        await write(trx);
        const bytes = await configBytes(trx, actionClass.workspaceId);
        if (bytes > Math.max(ACTION_CLASSES_BYTES_MAX, before)) throw forbidden(TOO_LARGE);
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

export const v3ActionClassRoutes: Routes = async (app, { context }) => {
  v3List(app, context, '/api/v3/action-classes', V3ActionClass, (workspaceId) =>
    context.db
      .selectFrom('actionClasses')
      .select(['id', 'name', 'description', 'type', 'key', 'createdAt'])
      .where('workspaceId', '=', workspaceId)
      // The built-in classes are older than v3, which does not show them.
      .where('type', '!=', 'automatic'),
  );
};

function alreadyExists(actionClass: ActionClass, taken: 'name' | 'key'): ApiError {
  return conflict(`Action with ${taken} ${actionClass[taken]} already exists`);
}
