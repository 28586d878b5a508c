/**
 * The routes about users for SDKs before version 5 and the npm package `@formbricks/api` 3.
 *
 * Callers: anybody.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { existing, invalidFields } from '#api/errors.ts';
import { UNIQUE_VALUE } from '#api/resources/contacts/attribute-store.ts';
import { prepareAttributes, setAttributes } from '#api/resources/contacts/set-attributes.ts';
import { findContactByUserId } from '#api/resources/contacts/store.ts';
import { createSegmentCache } from '#api/resources/segments/compiled.ts';
import { loadPathWorkspace, workspaceOf } from '#api/resources/workspaces/scope.ts';
import { USER_ID_LENGTH_MAX } from '#api/values/content-limits.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { checkEmail, identify } from './identify.ts';
import { AttributesBody, AttributesReply, IdentifiedReply } from './schema.ts';
import { deviceOf, readUserState } from './state.ts';

const Params = Type.Object({ workspaceId: Type.String(), userId: Type.String() });

export const legacyUserRoutes: Routes = async (app, { context }) => {
  const { db, clock, random } = context;
  const segments = createSegmentCache(context.states);
  const base = '/api/v1/client/:workspaceId';
  const loadWorkspace = loadPathWorkspace(context);

  for (const name of ['contacts', 'people']) {
    app.put(
      `${base}/${name}/:userId/attributes`,
      {
        schema: {
          summary: 'Set attributes of a contact (older SDKs)',
          params: Params,
          body: AttributesBody,
          response: { 200: AttributesReply },
        },
        onRequest: loadWorkspace,
      },
      async (request) => {
        const userId = checkedUserId(request.params.userId);
        const given = request.body.attributes;
        checkEmail(given);
        const { id: workspaceId } = workspaceOf(request);
        const now = toTimestamp(clock());
        const { isChanged, errors } = await againWhenTaken(UNIQUE_VALUE, () =>
          db.transaction().execute(async (trx) => {
            const prepared = await prepareAttributes(trx, workspaceId, given, now, random);
            const contact = existing(await findContactByUserId(trx, workspaceId, userId), 'contact', userId);
            return setAttributes(trx, contact, prepared, now, random);
          }),
        );
        return {
          data: {
            changed: isChanged,
            message: isChanged ? 'The attributes were updated' : 'There was nothing to update',
            ...(errors.length === 0 ? {} : { messages: errors }),
          },
        };
      },
    );
  }

  /** Creates the contact if there is none, because old SDKs introduce their user this way. */
  for (const name of ['identify/contacts', 'identify/people', 'app/people']) {
    app.get(
      `${base}/${name}/:userId`,
      {
        schema: {
          summary: 'Read the state of a user (older SDKs)',
          params: Params,
          response: { 200: IdentifiedReply },
        },
        onRequest: loadWorkspace,
      },
      async (request) => {
        const userId = checkedUserId(request.params.userId);
        const { contact, attributes } = await identify(context, workspaceOf(request).id, userId, {});
        const device = deviceOf(request.headers['user-agent'] ?? '');
        return {
          data: await readUserState({ db, segments }, { contact, userId, attributes, device }, clock()),
        };
      },
    );
  }
};

function checkedUserId(userId: string): string {
  if (userId.length > USER_ID_LENGTH_MAX) {
    throw invalidFields({ userId: `User ID cannot exceed ${USER_ID_LENGTH_MAX} characters` });
  }
  if (userId === '') throw invalidFields({ userId: 'This cannot be a user ID' });
  return userId;
}
