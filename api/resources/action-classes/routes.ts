/**
 * Action classes on v1, and a list of them on v3.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { isUniqueViolation } from '#api/db/database.ts';
import type { Database } from '#api/db/schema.ts';
import { type ApiError, badRequest, conflict, forbidden, invalidFields, notFound } from '#api/errors.ts';
import { v1Resource } from '#api/resources/workspaces/resource.ts';
import { workspaceOf } from '#api/resources/workspaces/scope.ts';
import { inWorkspace, newRow } from '#api/resources/workspaces/table.ts';
import { v3List } from '#api/resources/workspaces/v3-list.ts';
import { ACTION_CLASSES_BYTES_MAX } from '#api/values/content-limits.ts';
import { TextOrNull } from '#api/values/schemas.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { ActionClassBody, ActionClassReply } from './schema.ts';
import { type ActionClass, actionClasses, configBytes, findTaken } from './store.ts';

const TOO_LARGE = `The noCodeConfig of all action classes of a workspace may take ${ACTION_CLASSES_BYTES_MAX} bytes; delete one that is not used`;

const V3ActionClass = Type.Object({
  id: Type.String(),
  name: Type.String(),
  description: TextOrNull,
  type: Type.String(),
  key: TextOrNull,
});

export const actionClassRoutes: Routes = async (app, { context }) => {
  const { db, clock } = context;
  const resource = v1Resource(app, context, {
    url: '/api/v1/management/action-classes',
    param: 'actionClassId',
    type: 'Action Class',
    rows: actionClasses,
    isInState: true,
    reply: ActionClassReply,
    toReplies: (found) => found,
  });

  resource.list();

  resource.create(ActionClassBody, async (body, { id }) => {
    const made: ActionClass = { ...readActionClass(body), ...newRow(context, id) };
    await storing(db, made, async (trx) => {
      await actionClasses.refuseFull(trx, id);
      await actionClasses.insert(trx, made);
    });
    return made;
  });

  resource.read();

  resource.change(
    ActionClassBody,
    async (body, stored, request) => {
      const { id, workspaceId } = stored;
      if (workspaceOf(request).id !== workspaceId) {
        throw badRequest('Action class is part of another workspace', { workspaceId });
      }
      if (stored.type === 'automatic') throw badRequest('Automatic action classes cannot be updated');
      const changed = { ...stored, ...readActionClass(body), updatedAt: toTimestamp(clock()) };
      await storing(db, changed, async (trx) => {
        if (!(await actionClasses.update(trx, changed))) throw notFound('Action Class', id);
      });
      return changed;
    },
    true,
  );

  resource.remove(async ({ id, workspaceId, type }) => {
    if (type === 'automatic') throw badRequest('Automatic action classes cannot be deleted');
    return inWorkspace(db, workspaceId, (trx) => actionClasses.remove(trx, id));
  });
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

/** Runs a write in a transaction, unless the name or the key is taken, or the workspace has too much of them. */
async function storing(
  db: Database,
  actionClass: ActionClass,
  write: (trx: Database) => Promise<void>,
): Promise<void> {
  const { workspaceId } = actionClass;
  try {
    await inWorkspace(db, workspaceId, async (trx) => {
      const taken = await findTaken(trx, actionClass);
      if (taken !== null) throw alreadyExists(actionClass, taken);
      const before = await configBytes(trx, workspaceId);
      await write(trx);
      const bytes = await configBytes(trx, workspaceId);
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

function alreadyExists(actionClass: ActionClass, taken: 'name' | 'key'): ApiError {
  return conflict(`Action with ${taken} ${actionClass[taken]} already exists`);
}

/** Requires the field that the type needs, and keeps only that one. @throws ApiError invalid_fields */
function readActionClass({ name, type, description = null, key, noCodeConfig }: ActionClassBody) {
  const written = { name, type, description };
  if (type === 'code') {
    if (!key) throw invalidFields({ key: 'Required' });
    return { ...written, key, noCodeConfig: null };
  }
  if (!noCodeConfig) throw invalidFields({ noCodeConfig: 'Required' });
  return { ...written, key: null, noCodeConfig };
}
