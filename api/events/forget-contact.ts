/** Removes a contact that is being deleted from stored events, so that no later attempt sends its data. */
import { inTurn } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { isRecord } from '#api/values/schemas.ts';

/** The members of snapshots and payloads that describe the contact. */
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
    const event = trx.selectFrom('events').select(['snapshot', 'payload']).where('id', '=', id);
    const { snapshot = null, payload = null } = (await inTurn(trx, event).executeTakeFirst()) ?? {};
    await trx
      .updateTable('events')
      .set({ snapshot: without(snapshot, 'response'), payload: without(payload, 'data') })
      .where('id', '=', id)
      .execute();
  }
}

function without(json: string | null, part: 'response' | 'data'): string | null {
  const value: unknown = json === null ? null : JSON.parse(json);
  if (!isRecord(value) || !isRecord(value[part])) return json;
  const blank = MEMBERS.filter((name) => Object.hasOwn(value[part] ?? {}, name)).map((name) => [name, null]);
  return JSON.stringify({ ...value, [part]: { ...value[part], ...Object.fromEntries(blank) } });
}
