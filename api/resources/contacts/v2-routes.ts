/**
 * Contacts on v2: creates one contact, or many.
 *
 * Callers: API keys with the right to write to the workspace.
 */
import { Type } from 'typebox';
import type { Routes } from '#api/context.ts';
import { v2BodyWorkspace } from '#api/resources/workspaces/scope.ts';
import { MapOf, Nullable, scopeFields } from '#api/values/schemas.ts';
import { limitConcurrency } from '#api/work/concurrency.ts';
import { ATTRIBUTE_KEYS_MAX } from './attribute-key-rules.ts';
import { readBatch, writeBatch } from './bulk.ts';
import { createContact } from './new-contact.ts';

const CONTACTS_MAX = 250;

/**
 * 250 contacts with 79 attributes took 0.1 to 0.65 s in slices (one run, 2 busy cores). More of them at once would
 * only delay each other.
 */
const BATCHES = { runningMax: 2, waitingMax: 20, retryAfterSeconds: 2 } as const;

const Value = Type.Union([Type.String(), Type.Number(), Type.Boolean()]);

const NewContact = Type.Object({ ...scopeFields, attributes: MapOf(Value) });
const ContactReply = Type.Object({
  id: Type.String(),
  createdAt: Type.String(),
  workspaceId: Type.String(),
  environmentId: Type.String(),
  attributes: MapOf(Type.String()),
});

const AttributeKey = Type.Object({
  key: Type.String({ minLength: 1, maxLength: 255 }),
  /** Name for a key that is created. */
  name: Type.Optional(Nullable(Type.String({ minLength: 1, maxLength: 255 }))),
});
const Batch = Type.Object({
  ...scopeFields,
  contacts: Type.Array(
    Type.Object({
      attributes: Type.Array(Type.Object({ attributeKey: AttributeKey, value: Value }), {
        maxItems: ATTRIBUTE_KEYS_MAX,
      }),
    }),
    { minItems: 1, maxItems: CONTACTS_MAX },
  ),
});
const Skipped = Type.Array(Type.Object({ index: Type.Integer(), userId: Nullable(Type.String()) }));
const said = { status: Type.String(), message: Type.String() };
const AllWritten = Type.Object({ data: Type.Object(said) });
/** Clients read the contacts that were left out in either of two places. */
const SomeWritten = Type.Object({
  data: Type.Object({
    ...said,
    skippedContacts: Skipped,
    meta: Type.Object({ skippedContacts: Skipped }),
  }),
});

export const v2ContactRoutes: Routes = async (app, { context }) => {
  const writeWhenItsTurn = limitConcurrency(writeBatch, BATCHES, (_context, workspaceId) => workspaceId);

  app.post(
    '/api/v2/management/contacts',
    {
      schema: { body: NewContact, response: { 201: Type.Object({ data: ContactReply }) } },
      config: { refuses: ['bad_request', 'not_found', 'forbidden', 'conflict'] },
    },
    async (request, reply) => {
      const { id: workspaceId, environmentId } = await v2BodyWorkspace(context, request);
      const { contact, attributes } = await createContact(context, workspaceId, request.body.attributes);
      const { id, createdAt } = contact;
      return reply.code(201).send({ data: { id, createdAt, workspaceId, environmentId, attributes } });
    },
  );

  app.put(
    '/api/v2/management/contacts/bulk',
    {
      schema: { body: Batch, response: { 200: AllWritten, 207: SomeWritten } },
      config: { refuses: ['bad_request', 'not_found', 'forbidden'] },
    },
    async (request, reply) => {
      const { contacts } = request.body;
      const batch = readBatch(contacts);
      const { id: workspaceId } = await v2BodyWorkspace(context, request);
      const left = await writeWhenItsTurn(context, workspaceId, batch);
      if (left.length === 0) {
        return { data: { status: 'success', message: 'Contacts bulk upload successful' } };
      }
      const skippedContacts = left.map(({ index, userId }) => ({ index, userId }));
      const message = [
        'Contacts bulk upload partially successful:',
        `${left.length} of ${contacts.length} were left out, because their user id is that of another contact,`,
        'or the contact with their address has another user id',
      ].join(' ');
      return reply
        .code(207)
        .send({ data: { status: 'success', message, skippedContacts, meta: { skippedContacts } } });
    },
  );
};
