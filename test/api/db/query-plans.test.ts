/**
 * No request scans a table that grows with use. SQLite explains every query of a walk over the API, and of every list
 * with keys for one and for several workspaces. So the queries need no list of their own.
 */
import type { CompiledQuery } from 'kysely';
import t from 'tap';
import { addSurvey, apiKey, workspaceId } from '#test/support/api-app.ts';
import { readDescription } from '#test/support/description.ts';
import { openHttp } from '#test/support/http-send.ts';
import { planOf, startRecordedApi } from '#test/support/query-plan.ts';
import { bodies, ids } from '#test/support/requests.ts';
import { createWorld, logIn } from '#test/support/world.ts';

/** Tables with a row for each action of users, and those that every workspace fills. */
const growing = [
  'responses',
  'displays',
  'contacts',
  'contactAttributes',
  'events',
  'deliveries',
  'deliveryAttempts',
  'auditEvents',
  'mailOutbox',
  'sessions',
  'actionClasses',
  'contactAttributeKeys',
  'languages',
  'segments',
  'webhooks',
];
/** Matches `SCAN responses`, also along an index from its first entry to its last. */
const FULL_SCAN = new RegExp(`^SCAN "?(${growing.join('|')})"?( |$)`);

const { api, db, queries } = await startRecordedApi(t, {
  env: { DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1' },
});

/** Groups by text, because a query has the same plan with other values. */
const differentQueries = () => new Map(queries.map((query) => [query.sql, query]));

async function fullScans(): Promise<readonly string[]> {
  const found: string[] = [];
  for (const [text, query] of differentQueries()) {
    if (!/^(select|update|delete|with|insert\b.*\bfrom)\b/i.test(text)) continue;
    for (const step of await planOf(db, query)) if (FULL_SCAN.test(step)) found.push(`${step}: ${text}`);
  }
  return found;
}

/** Lists of one workspace. Those of several are sorted, unless their order begins with the workspace. */
const LIST =
  /from "(actionClasses|webhooks)" where "workspaceId" in \((?:\?|\$1)\) order|from "(languages|segments)" .* order/;

async function isSorted(query: CompiledQuery): Promise<boolean> {
  return (await planOf(db, query)).some((step) => /TEMP B-TREE FOR ORDER/.test(step));
}

t.test('no request of a walk over the API scans a table', async (t) => {
  const { close, send } = openHttp(await api.app.listen({ host: '127.0.0.1', port: 0 }));
  t.teardown(close);
  const description = readDescription((await api.client('GET', '/api/docs/openapi.json')).json);
  const world = createWorld({
    ...{ send, description, workspaceId, apiKey, bodies, ids, session: await logIn(send) },
    // Nothing listens on this port.
    known: { url: 'http://127.0.0.1:9/hook' },
  });
  let taken = 0;
  for (const operation of description.operations) {
    const { status } = await send(await world.requestFor(operation));
    if (status < 300) taken += 1;
  }
  t.ok(taken > 100, `${taken} operations did something`);
  const { size } = differentQueries();
  t.ok(size > 80, `${size} different queries`);
  t.strictSame(await fullScans(), []);
});

t.test('every list reads an index, with a key for one workspace and for three', async (t) => {
  await api.addWorkspace('ws2');
  await api.addWorkspace('ws3');
  const several = await api.addKey({ [workspaceId]: 'manage', ws2: 'read', ws3: 'read' });
  const { paths } = (await api.client('GET', '/api/docs/openapi.json')).json;
  const lists = Object.keys(paths).filter(
    (path) => /^\/api\/v\d\//.test(path) && paths[path].get !== undefined,
  );
  t.ok(lists.length > 30);
  const { id: surveyId } = await addSurvey(api);
  for (const path of lists) {
    const url = path
      .replace('{workspaceId}', workspaceId)
      .replace('{surveyId}', surveyId)
      .replace(/\{\w+\}/g, 'x');
    for (const key of [apiKey, several]) {
      for (const query of [
        '',
        '?limit=10&skip=10',
        `?workspaceId=${workspaceId}&limit=10`,
        `?surveyId=${surveyId}`,
      ]) {
        await api.client('GET', url + query, undefined, { 'x-api-key': key });
      }
    }
  }
  t.strictSame(await fullScans(), []);
  const ordered = [...differentQueries().values()].filter(({ sql }) => LIST.test(sql));
  t.ok(ordered.length >= 4, `${ordered.length} lists`);
  for (const list of ordered) t.notOk(await isSorted(list), list.sql);
});

t.test('no response scans a table, with or without contact and display', async (t) => {
  await db.deleteFrom('webhooks').execute();
  const { id: surveyId } = await addSurvey(api, { autoComplete: 100 });
  const client = `/api/v1/client/${workspaceId}`;
  for (const hasDisplay of [false, true]) {
    for (const respondent of [{}, { userId: 'u1' }]) {
      const shown = hasDisplay ? await api.client('POST', `${client}/displays`, { surveyId }) : null;
      const display = shown === null ? {} : { displayId: shown.json.data.id };
      const body = { surveyId, finished: true, data: { q1: 'x' }, ...respondent, ...display };
      t.equal((await api.client('POST', `${client}/responses`, body)).status, 200);
    }
  }
  t.strictSame(await fullScans(), []);
});

t.test('the test would find a full scan', async (t) => {
  const { db: recording } = api.context;
  await recording.selectFrom('responses').select('id').where('language', '=', 'de').execute();
  await recording.selectFrom('contacts').select('id').where('updatedAt', '>', '2026').execute();
  t.match(await fullScans(), [/^SCAN responses/, /^SCAN contacts/]);
});
