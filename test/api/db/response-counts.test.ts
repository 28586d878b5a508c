/** The kept numbers of responses are those of the rows, whatever happens to the rows, and nobody waits for them. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { PARTS } from '#api/db/migrations/response-counts.ts';
import type { Database } from '#api/db/schema.ts';
import { deleteContact } from '#api/resources/contacts/deletion.ts';
import { responses } from '#api/resources/responses/store.ts';
import { countResponses, responseCountsOf } from '#api/resources/surveys/response-counts.ts';
import { addSurvey, startApi, workspaceId } from '#test/support/api-app.ts';
import { isOnPostgres, openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { responseRow } from '#test/support/response-row.ts';
import { dice, rounds } from '#test/support/seed.ts';

/** Reads the numbers from the rows. */
async function counted(db: Database, surveyId: string) {
  const { rows } = await sql<{ responses: number; finished: number }>`
    select count(*) as "responses", coalesce(sum("finished"), 0) as "finished" from "responses"
    where "surveyId" = ${surveyId}`.execute(db);
  return rows[0];
}

async function isExact(t: Test, db: Database, surveyIds: readonly string[]): Promise<void> {
  const kept = await responseCountsOf(db, surveyIds);
  for (const id of surveyIds) {
    t.strictSame(kept.get(id) ?? { responses: 0, finished: 0 }, await counted(db, id), id);
  }
}

const setFinished = (db: Database, id: string, finished: 0 | 1) =>
  db.updateTable('responses').set({ finished }).where('id', '=', id).execute();

const insert = (
  db: Database,
  rows: readonly (Omit<ReturnType<typeof responseRow>, 'contactId'> & { contactId: string | null })[],
) => db.insertInto('responses').values(rows).execute();

t.test('after each of many random changes', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  await api.addWorkspace('ws2');
  const surveyIds = [(await addSurvey(api)).id, (await addSurvey(api)).id];
  const survey = () => surveyIds[below(surveyIds.length)] ?? '';
  const below = dice(32);
  let made = 0;
  const row = () => {
    made += 1;
    return responseRow(`r${made}`, survey(), below(2) === 0 ? 0 : 1);
  };
  const anyId = async (): Promise<string> => {
    const rows = await db.selectFrom('responses').select('id').orderBy('id').execute();
    return rows[below(rows.length)]?.id ?? '';
  };
  for (let step = 0; step < rounds(200); step += 1) {
    const id = await anyId();
    switch (below(8)) {
      case 0:
        await responses.remove(db, id);
        break;
      case 1:
        await setFinished(db, id, 0);
        break;
      case 2:
        await setFinished(db, id, 1);
        break;
      case 3:
        await db.updateTable('responses').set({ surveyId: survey() }).where('id', '=', id).execute();
        break;
      case 4:
        await db.deleteFrom('responses').where('id', '>', id).execute();
        break;
      case 5: {
        // A transaction that is rolled back counts nothing.
        const undone = db.transaction().execute(async (trx) => {
          await insert(trx, [row(), row()]);
          throw new Error('undone');
        });
        await t.rejects(undone, { message: 'undone' });
        break;
      }
      default:
        await insert(db, Array.from({ length: 1 + below(4) }, row));
    }
    await isExact(t, db, surveyIds);
    const all = await Promise.all(surveyIds.map((id) => countResponses(db, [workspaceId], id)));
    t.equal(
      await countResponses(db, [workspaceId, 'ws2']),
      all.reduce((sum, one) => sum + one, 0),
    );
  }
  t.equal(await countResponses(db, ['ws2']), 0);
  t.equal(await countResponses(db, ['ws2'], surveyIds[0]), 0, 'a survey of another workspace');
});

t.test('deletions of owners', async (t) => {
  const api = await startApi(t);
  const { db } = api.context;
  const [one, other] = [(await addSurvey(api)).id, (await addSurvey(api)).id];
  await api.manage('POST', '/api/v2/management/contacts', {
    workspaceId,
    attributes: { email: 'a@example.com' },
  });
  const contact = await db.selectFrom('contacts').select('id').executeTakeFirstOrThrow();
  await insert(
    db,
    Array.from({ length: 450 }, (_, i) => ({
      ...responseRow(`r${i}`, i < 430 ? one : other),
      contactId: i % 2 === 0 ? contact.id : null,
    })),
  );
  await deleteContact(db, contact.id);
  t.equal(await countResponses(db, [workspaceId]), 450, 'responses stay without their contact');
  t.equal((await api.manage('DELETE', `/api/v1/management/surveys/${one}`)).status, 200);
  await isExact(t, db, [one, other]);
  t.equal(await countResponses(db, [workspaceId]), 20);
  await db.deleteFrom('workspaces').where('id', '=', workspaceId).execute();
  t.strictSame(await db.selectFrom('responseCounts').selectAll().execute(), []);
});

t.test('writers at the same time, on two connections', async (t) => {
  const url = await sharedDatabase(t);
  const api = await startApi(t, { env: { DATABASE_URL: url } });
  const second = openTestDatabase(url);
  t.teardown(() => second.destroy());
  const dbs = [api.context.db, second];
  const surveyIds = [(await addSurvey(api)).id, (await addSurvey(api)).id, (await addSurvey(api)).id];
  const [gone = ''] = surveyIds;
  await insert(
    api.context.db,
    Array.from({ length: 500 }, (_, i) => responseRow(`g${i}`, gone)),
  );
  const write = async (i: number): Promise<void> => {
    const db = dbs[i % 2] ?? second;
    const surveyId = surveyIds[1 + (i % 3 === 0 ? 1 : 0)] ?? '';
    const [kept, deleted] = [`k${i}`, `d${i}`];
    await insert(db, [responseRow(kept, surveyId, 0), responseRow(deleted, surveyId)]);
    await Promise.all([setFinished(db, kept, 1), responses.remove(db, deleted)]);
    if (i % 4 === 0) await Promise.all(dbs.map((each) => setFinished(each, kept, 0)));
  };
  const deleting = api.manage('DELETE', `/api/v1/management/surveys/${gone}`);
  await Promise.all(Array.from({ length: 60 }, (_, i) => write(i)));
  t.equal((await deleting).status, 200);
  await isExact(t, api.context.db, surveyIds);
  t.equal(await countResponses(second, [workspaceId]), 60);
  t.strictSame((await responseCountsOf(second, surveyIds)).get(surveyIds[1] ?? ''), {
    responses: 40,
    finished: 30,
  });
});

/** Finds a connection that changes other rows of the numbers. Those that were tried before stay taken meanwhile. */
function onAnotherPart(db: Database, pid: number, work: (other: Database) => Promise<void>): Promise<void> {
  return db
    .connection()
    .execute(async (other) =>
      (await pidOf(other)) % PARTS === pid % PARTS ? onAnotherPart(db, pid, work) : work(other),
    );
}

async function pidOf(db: Database): Promise<number> {
  const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as "pid"`.execute(db);
  return rows[0]?.pid ?? 0;
}

if (isOnPostgres) {
  t.test('a writer does not wait for another one of the same survey', async (t) => {
    const api = await startApi(t);
    const { db } = api.context;
    const { id } = await addSurvey(api);
    await insert(db, [responseRow('first', id)]);
    await db.transaction().execute(async (slow) => {
      await insert(slow, [responseRow('slow', id)]);
      await onAnotherPart(db, await pidOf(slow), async (fast) => {
        await insert(fast, [responseRow('fast', id)]);
        await setFinished(fast, 'fast', 0);
        await responses.remove(fast, 'first');
        t.equal(await countResponses(fast, [workspaceId]), 1, 'what is not committed does not count');
      });
    });
    await isExact(t, db, [id]);
    t.equal(await countResponses(db, [workspaceId]), 2);
  });
}
