/**
 * Creates or changes many contacts at once. Their e-mail addresses identify them.
 *
 * The batch is checked first. Then missing keys are created, and then contacts are written in slices, each in a
 * transaction of its own, so that other writers wait for a slice and not for the whole batch. If a batch is
 * interrupted, because the process dies or the database is busy, send it again: contacts that are already written are
 * not changed.
 */
import { setImmediate } from 'node:timers/promises';
import type { Context } from '#api/context.ts';
import { lockRow, lockRows } from '#api/db/locks.ts';
import type { Database, Timestamp } from '#api/db/schema.ts';
import { againWhenTaken } from '#api/db/taken.ts';
import { badRequest, invalidFields } from '#api/errors.ts';
import { newId, type Random } from '#api/values/ids.ts';
import { toTimestamp } from '#api/values/timestamps.ts';
import { keyProblem } from './attribute-key-rules.ts';
import { type AttributeKey, attributeKeys, customKey } from './attribute-key-store.ts';
import { type AttributeChange, findOwnersOf, upsertContactAttributes } from './attribute-store.ts';
import { identityProblem, valueProblem } from './given-attributes.ts';
import {
  attributesOf,
  type Contact,
  contacts,
  findContactIdsByUserId,
  setContactUserId,
  touchContacts,
} from './store.ts';

/** Maximum number of attributes in one transaction, unless a single contact has more. */
const SLICE_ATTRIBUTES = 500;
const PROBLEMS_MAX = 50;

interface GivenContact {
  readonly attributes: readonly {
    readonly attributeKey: { readonly key: string; readonly name?: string | null | undefined };
    readonly value: string | number | boolean;
  }[];
}

interface BatchAttribute {
  readonly key: string;
  readonly name: string | null;
  readonly value: string;
  /** The path in the batch, for errors. */
  readonly path: string;
}

interface BatchContact {
  readonly index: number;
  readonly email: string;
  readonly userId: string | null;
  readonly attributes: readonly BatchAttribute[];
}

/**
 * Pure.
 *
 * @throws ApiError invalid_fields for a contact without an address, for invalid values, and for keys, addresses and
 *   user ids that occur twice
 */
export function readBatch(contacts: readonly GivenContact[]): readonly BatchContact[] {
  const problems = new Map<string, string>();
  const seen = { email: new Set<string>(), userId: new Set<string>() };
  const batch = contacts.map((contact, index): BatchContact => {
    const attributes = contact.attributes.map(({ attributeKey: { key, name }, value }, i) => ({
      key,
      name: name ?? null,
      value: String(value),
      path: `contacts.${index}.attributes.${i}`,
    }));
    const byKey = new Map<string, string>();
    for (const { key, path, value } of attributes) {
      if (byKey.has(key)) problems.set(`${path}.attributeKey.key`, 'occurs twice in this contact');
      byKey.set(key, value);
      const problem = identityProblem(key, value);
      if (problem !== null) problems.set(`${path}.value`, problem);
      if (key !== 'email' && key !== 'userId') continue;
      if (seen[key].has(value)) problems.set(`${path}.value`, 'occurs twice in this batch');
      seen[key].add(value);
    }
    const email = byKey.get('email');
    if (email === undefined) problems.set(`contacts.${index}.attributes`, 'must have one with the key email');
    return { index, email: email ?? '', userId: byKey.get('userId') ?? null, attributes };
  });
  if (problems.size > 0) throw invalidFields(Object.fromEntries([...problems].slice(0, PROBLEMS_MAX)));
  return batch;
}

type Parts = Pick<Context, 'db' | 'clock' | 'random'>;

/**
 * @returns the contacts that were left out: their user id belongs to another contact, or the contact with their
 *   address has another one
 * @throws ApiError bad_request for a key that cannot be created, invalid_fields for a value that does not fit its
 *   key, forbidden when the workspace would have too many keys. Nothing is written then.
 */
export async function writeBatch(
  { db, clock, random }: Parts,
  workspaceId: string,
  batch: readonly BatchContact[],
): Promise<readonly BatchContact[]> {
  const now = toTimestamp(clock());
  await db.transaction().execute((trx) => keysFor(trx, workspaceId, batch, now, random));
  const left: BatchContact[] = [];
  for (const slice of slicesOf(batch)) {
    // Apps create contacts at the same time. The next attempt finds the ones that conflicted.
    const skipped = await againWhenTaken([], () =>
      db.transaction().execute((trx) => writeSlice(trx, { workspaceId, now, random }, slice)),
    );
    left.push(...skipped);
    await setImmediate();
  }
  return left;
}

/**
 * All keys of the workspace, including those that the batch creates. It locks the workspace, because two batches with
 * the same contacts would otherwise deadlock.
 */
async function keysFor(
  trx: Database,
  workspaceId: string,
  batch: readonly BatchContact[],
  now: Timestamp,
  random: Random,
): Promise<ReadonlyMap<string, AttributeKey>> {
  await lockRow(trx, 'workspaces', workspaceId);
  const keys = new Map((await attributeKeys.listAll(trx, workspaceId)).map((key) => [key.key, key]));
  const made: AttributeKey[] = [];
  for (const { key, name, path, value } of batch.flatMap(({ attributes }) => attributes)) {
    const known = keys.get(key);
    const problem = valueProblem(value, known);
    if (problem !== null) throw invalidFields({ [`${path}.value`]: problem });
    if (known !== undefined) continue;
    const unsafe = keyProblem(key);
    if (unsafe !== null) {
      throw badRequest(`The key ${unsafe}`, { [`${path}.attributeKey.key`]: `The key ${unsafe}` });
    }
    const fields = { workspaceId, key, ...(name === null ? {} : { name }) };
    const fresh = customKey(fields, now, random);
    keys.set(key, fresh);
    made.push(fresh);
  }
  if (made.length > 0) await attributeKeys.refuseFull(trx, workspaceId, made.length);
  await attributeKeys.insert(trx, ...made);
  return keys;
}

function* slicesOf(batch: readonly BatchContact[]): Iterable<readonly BatchContact[]> {
  let slice: BatchContact[] = [];
  let count = 0;
  for (const contact of batch) {
    if (slice.length > 0 && count + contact.attributes.length > SLICE_ATTRIBUTES) {
      yield slice;
      slice = [];
      count = 0;
    }
    slice.push(contact);
    count += contact.attributes.length;
  }
  yield slice;
}

interface Target {
  readonly workspaceId: string;
  readonly now: Timestamp;
  readonly random: Random;
}

/**
 * Reads in the same transaction which contact has which address and user id. @returns the contacts that were left out
 */
async function writeSlice(
  trx: Database,
  { workspaceId, now, random }: Target,
  slice: readonly BatchContact[],
): Promise<readonly BatchContact[]> {
  // Read again: a key may have been deleted since the batch began.
  const keys = await keysFor(trx, workspaceId, slice, now, random);
  const emailKey = keys.get('email');
  if (emailKey === undefined) throw new Error('A workspace has no key for e-mail addresses');
  const emails = slice.map(({ email }) => email);
  const owners = await findOwnersOf(trx, emailKey.id, emails);
  await lockRows(trx, 'contacts', [...owners.values()]);
  const stored = await attributesOf(trx, [...owners.values()]);
  const known = new Map(
    (await contacts.findAll(trx, [...owners.values()])).map((contact) => [contact.id, contact]),
  );
  const userIds = slice.flatMap(({ userId }) => userId ?? []);
  const users = await findContactIdsByUserId(trx, workspaceId, userIds);

  const made: Contact[] = [];
  const identified: { readonly id: string; readonly userId: string }[] = [];
  const changes: AttributeChange[] = [];
  const left: BatchContact[] = [];
  for (const given of slice) {
    const { attributes, email, userId } = given;
    const contact = known.get(owners.get(email) ?? '');
    const isOthers = users.has(userId) && users.get(userId) !== contact?.id;
    const isAnother = userId !== null && (contact?.userId ?? userId) !== userId;
    if (isOthers || isAnother) {
      left.push(given);
      continue;
    }
    const id = contact?.id ?? newId(random);
    if (contact === undefined) made.push({ id, workspaceId, userId, createdAt: now, updatedAt: now });
    else if (userId !== null && contact.userId === null) identified.push({ id, userId });
    const has = new Map(Object.entries(stored.get(id) ?? {}));
    for (const { key, value } of attributes) {
      const known = keys.get(key);
      if (known === undefined || has.get(key) === value) continue;
      changes.push({ contactId: id, attributeKeyId: known.id, value, isUnique: known.isUnique });
    }
  }
  await contacts.insert(trx, ...made);
  for (const { id, userId } of identified) await setContactUserId(trx, id, userId);
  if (changes.length > 0) {
    await upsertContactAttributes(trx, changes, now, random);
    await touchContacts(trx, [...new Set(changes.map(({ contactId }) => contactId))], now);
  }
  return left;
}
