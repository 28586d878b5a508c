/** Two that create the same contact wait in one order, whatever one of them has locked before. */
import { sql } from 'kysely';
import t from 'tap';
import { lockRow } from '#api/db/locks.ts';
import type { Database } from '#api/db/schema.ts';
import { type Contact, findOrCreateContact } from '#api/resources/contacts/store.ts';
import { startApi, workspaceId } from '#test/support/api-app.ts';
import { until } from '#test/support/until.ts';

t.test('who creates a contact waits for the workspace first, so nobody is in a deadlock', async (t) => {
  const { db, random } = (await startApi(t)).context;
  let tries = 0;
  const create = (trx: Database): Promise<Contact> => {
    tries++;
    return findOrCreateContact(trx, workspaceId, 'ada', '2026-01-01T00:00:00.000Z', random);
  };
  const isWaiting = async (): Promise<boolean> => {
    const { rows } = await sql`select 1 from pg_locks where not granted`.execute(db);
    return rows.length > 0;
  };
  let other: Promise<Contact> | undefined;
  const contact = await db.transaction().execute(async (trx) => {
    await lockRow(trx, 'workspaces', workspaceId);
    other = db.transaction().execute(create);
    other.catch(() => undefined);
    await until(isWaiting, 'the other one waits');
    return create(trx);
  });
  t.equal((await other)?.id, contact.id);
  t.equal(tries, 2, 'no transaction was rolled back and repeated');
});
