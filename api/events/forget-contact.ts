/** Removes a contact that is being deleted from stored events, so that no later attempt sends its data. */
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';

/** The members of payloads that describe the contact. */
const MEMBERS = ['contactId', 'contact', 'contactAttributes', 'person', 'personAttributes'];

/** Call it in the transaction that takes the contact from these responses, after that. */
export async function forgetContactOf(trx: Database, responseIds: readonly string[]): Promise<void> {
  if (responseIds.length === 0) return;
  const events = await trx
    .selectFrom('events')
    .select('id')
    .where('responseId', 'in', responseIds)
    .orderBy('id')
    .execute();
  // One at a time, because a payload may be large.
  for (const { id } of events) {
    await lockRow(trx, 'events', id);
    const row = await trx.selectFrom('events').select('payload').where('id', '=', id).executeTakeFirst();
    if (row === undefined) continue;
    await trx
      .updateTable('events')
      .set({ payload: withoutContact(row.payload) })
      .where('id', '=', id)
      .execute();
  }
}

function withoutContact(payload: string): string {
  const { data, ...rest } = JSON.parse(payload);
  const blank = MEMBERS.filter((name) => Object.hasOwn(data, name)).map((name) => [name, null]);
  return JSON.stringify({ ...rest, data: { ...data, ...Object.fromEntries(blank) } });
}
