/**
 * Deletes a contact with its attributes and displays, and its data in responses, events and mails. Its responses stay,
 * without a contact. There may be many rows, so they are changed in slices. After an interruption the same request
 * finishes the work.
 */
import { setImmediate } from 'node:timers/promises';
import { normalizeEmail } from '#api/auth/password.ts';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { deleteSome, inSlices } from '#api/db/slices.ts';
import { forgetContactOf } from '#api/events/forget-contact.ts';
import { forgetRecipients } from '#api/mail/mailer.ts';
import { attributesOf, contacts } from './store.ts';

/** Responses of a slice. Each has several events, whose texts are written anew. */
const RESPONSES = 20;

/** @returns false if the contact was gone */
export async function deleteContact(db: Database, id: string): Promise<boolean> {
  await inSlices((rowsMax) =>
    db.transaction().execute(async (trx) => {
      // If two requests delete the same contact, one waits.
      await lockRow(trx, 'contacts', id);
      const some = trx.selectFrom('displays').select('id').where('contactId', '=', id).limit(rowsMax);
      return deleteSome(trx, 'displays', some);
    }),
  );
  const unlinkSome = () => db.transaction().execute((trx) => unlinkResponses(trx, id));
  while ((await unlinkSome()) === RESPONSES) await setImmediate();
  return db.transaction().execute(async (trx) => {
    // From here on no response of this contact can be added. The loop takes those that came meanwhile.
    while ((await unlinkResponses(trx, id)) > 0);
    const attributes = Object.values((await attributesOf(trx, [id])).get(id) ?? {});
    await forgetRecipients(
      trx,
      attributes.flatMap((value) => normalizeEmail(value) ?? []),
    );
    return contacts.remove(trx, id);
  });
}

/** @returns the number of responses, at most `RESPONSES` */
async function unlinkResponses(trx: Database, id: string): Promise<number> {
  await lockRow(trx, 'contacts', id);
  const some = trx.selectFrom('responses').select('id').where('contactId', '=', id).limit(RESPONSES);
  const unlinked = await trx
    .updateTable('responses')
    .set({ contactId: null, contactAttributes: null })
    .where('id', 'in', some)
    .returning('id')
    .execute();
  await forgetContactOf(
    trx,
    unlinked.map((response) => response.id),
  );
  return unlinked.length;
}
