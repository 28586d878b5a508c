/** Two concurrent changes of tags. One pauses after each of its statements, while the other runs as far as it can. */
import { sql } from 'kysely';
import t, { type Test } from 'tap';
import { isConflict } from '#api/db/postgres-errors.ts';
import type { Database } from '#api/db/schema.ts';
import { deleteTag, mergeTag } from '#api/resources/tags/remove.ts';
import { addSurvey, startApi } from '#test/support/api-app.ts';
import { addTag } from '#test/support/tags.ts';
import { until } from '#test/support/until.ts';

const api = await startApi(t);
const { db } = api.context;
const survey = await addSurvey(api);
const url = '/api/v1/management/responses';

interface Tagged {
  /** Ids of three tags. */
  readonly a: string;
  readonly b: string;
  readonly c: string;
  /** Ids of the responses that have them, in this order. */
  readonly responses: readonly string[];
}

let runs = 0;
async function makeTags(): Promise<Tagged> {
  runs += 1;
  const ids: string[] = [];
  const responses: string[] = [];
  for (const name of ['a', 'b', 'c']) {
    const body = { surveyId: survey.id, data: { q1: 'x' }, finished: true };
    const response = (await api.manage('POST', url, body)).json.data.id;
    responses.push(response);
    ids.push(await addTag(api, `${name}${runs}`, response));
  }
  const [a = '', b = '', c = ''] = ids;
  return { a, b, c, responses };
}

async function namesOn(response: string): Promise<readonly string[]> {
  const { json } = await api.manage('GET', `${url}/${response}`);
  return json.data.tags.map(({ name }: { name: string }) => name.slice(0, 1));
}

async function isAnyoneBlocked(): Promise<boolean> {
  const { rows } = await sql`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`.execute(
    db,
  );
  return rows.length > 0;
}

/** Repeats a transaction like the driver, which a database with a plugin does not. */
async function againAfterConflict<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (isConflict(error)) return work();
    throw error;
  }
}

type Change<T> = (db: Database, tagged: Tagged) => Promise<T>;

/** Runs both once for each statement of the first, which pauses after it until the second has ended or is blocked. */
async function everyPause<A, B>(
  first: Change<A>,
  second: Change<B>,
  check: (outcome: { tagged: Tagged; results: readonly [A, B]; pausedAfter: number }) => Promise<void>,
): Promise<number> {
  for (let pausedAfter = 1; ; pausedAfter += 1) {
    const tagged = await makeTags();
    let statements = 0;
    let other: Promise<B> | null = null;
    const pausing = db.withPlugin({
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        statements += 1;
        if (statements === pausedAfter) {
          let hasEnded = false;
          other = second(db, tagged).finally(() => {
            hasEnded = true;
          });
          await until(async () => hasEnded || (await isAnyoneBlocked()));
        }
        return result;
      },
    });
    const one = await againAfterConflict(() => first(pausing, tagged));
    if (other === null) return statements;
    await check({ tagged, results: [one, await other], pausedAfter });
  }
}

const aIntoB: Change<boolean> = (db, { a, b }) => mergeTag(db, a, b);
const bIntoC: Change<boolean> = (db, { b, c }) => mergeTag(db, b, c);

function keepsTags(t: Test, first: Change<boolean>, second: Change<boolean>): Promise<number> {
  return everyPause(first, second, async ({ pausedAfter, results, tagged }) => {
    const names = await Promise.all(tagged.responses.map(namesOn));
    // The merge a→b fails when b→c came first.
    const expected = results.every((isDone) => isDone) ? [['c'], ['c'], ['c']] : [['a'], ['c'], ['c']];
    t.strictSame(names, expected, `paused after ${pausedAfter}, results ${results}`);
  });
}

t.test('merges a→b and b→c: no response loses its tag when a→b pauses', async (t) => {
  t.ok((await keepsTags(t, aIntoB, bIntoC)) > 1);
});

t.test('merges a→b and b→c: no response loses its tag when b→c pauses', async (t) => {
  t.ok((await keepsTags(t, bIntoC, aIntoB)) > 1);
});

t.test('merges a→b and b→a: every response keeps one tag', async (t) => {
  await everyPause(
    aIntoB,
    (db, { a, b }) => mergeTag(db, b, a),
    async ({ pausedAfter, tagged }) => {
      const names = await Promise.all(tagged.responses.map(namesOn));
      t.match(names, [[/a|b/], [/a|b/], ['c']], `paused after ${pausedAfter}`);
      t.same(names[0], names[1]);
    },
  );
});

t.test('a merge into a tag that is deleted either fails or ended before', async (t) => {
  await everyPause(
    aIntoB,
    (db, { b }) => deleteTag(db, b),
    async ({ pausedAfter, results, tagged }) => {
      const names = await namesOn(tagged.responses[0] ?? '');
      t.strictSame(names, results[0] ? [] : ['a'], `paused after ${pausedAfter}`);
    },
  );
});
