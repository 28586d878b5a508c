/**
 * Action classes on v1.
 *
 * Callers: API keys and sessions. GET needs the right to read the workspace, POST and PUT to write, DELETE to manage.
 */
import { type Static, Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { unlessTaken } from '#api/db/taken.ts';
import { conflict, invalidFields } from '#api/errors.ts';
import { workspaceResource } from '#api/resources/workspaces/resource.ts';
import { newRow } from '#api/resources/workspaces/table.ts';
import { MapOf, Nullable, OneOf, rowFields, scopeFields } from '#api/values/schemas.ts';
import { type ActionClass, actionClasses } from './store.ts';

const Name = Type.String({ minLength: 1, maxLength: 255 });

/** SDKs read `noCodeConfig`, which is stored as sent. */
export const ActionClassBody = Type.Object({
  ...scopeFields,
  name: Name,
  description: Type.Optional(Nullable(Type.String({ maxLength: 2_048 }))),
  type: OneOf(['code', 'noCode']),
  key: Type.Optional(Nullable(Name)),
  noCodeConfig: Type.Optional(Nullable(MapOf(Type.Unknown()))),
});

export const ActionClassReply = Type.Object({
  ...rowFields,
  name: Type.String(),
  description: Nullable(Type.String()),
  type: Type.String(),
  key: Nullable(Type.String()),
  noCodeConfig: Type.Unknown(),
});

export const actionClassRoutes: Routes = async (app, { context }) => {
  const { db } = context;
  const resource = workspaceResource(app, context, {
    version: 'v1',
    url: '/api/v1/management/action-classes',
    param: 'actionClassId',
    type: 'Action Class',
    rows: actionClasses,
    isInState: true,
    reply: ActionClassReply,
    toReplies: (found) => found,
  });

  resource.list();

  resource.create(ActionClassBody, (body, { id }) => {
    const fields = readActionClass(body);
    return unlessTwice(fields, () => actionClasses.create(db, { ...fields, ...newRow(context, id) }));
  });

  resource.read();

  resource.change(ActionClassBody, (body, loaded) => {
    const fields = readActionClass(body);
    return unlessTwice(fields, () => actionClasses.change(context, loaded, 'Action Class', () => fields));
  });

  resource.remove(({ id }) => actionClasses.remove(db, id));
};

/** @throws ApiError conflict if the name or the key is taken */
function unlessTwice<T>(
  { name, key }: Pick<ActionClass, 'name' | 'key'>,
  write: () => Promise<T>,
): Promise<T> {
  const taken = (field: string, value: string | null) =>
    conflict(`Action with ${field} ${value} already exists`);
  return unlessTaken(['actionClasses.workspaceId', 'actionClasses.name'], taken('name', name), () =>
    unlessTaken(['actionClasses.workspaceId', 'actionClasses.key'], taken('key', key), write),
  );
}

/** Requires the field that the type needs, and keeps only that one. @throws ApiError invalid_fields */
function readActionClass({
  name,
  type,
  description = null,
  key,
  noCodeConfig,
}: Static<typeof ActionClassBody>) {
  const written = { name, type, description };
  if (type === 'code') {
    if (!key) throw invalidFields({ key: 'Required' });
    return { ...written, key, noCodeConfig: null };
  }
  if (!noCodeConfig) throw invalidFields({ noCodeConfig: 'Required' });
  return { ...written, key: null, noCodeConfig };
}
