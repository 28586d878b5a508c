/** `db copy` from SQLite to PostgreSQL, as an operator runs it. */
import { join } from 'node:path';
import pg from 'pg';
import t, { type Test } from 'tap';
import { openAlone } from '#api/db/sqlite-snapshot.ts';
import { creatorAt } from '#test/api/events/support.ts';
import { apiCli, apiCommand } from '#test/support/cli.ts';
import { asText, execute, oddSource, rowsOf, type Source, tablesOf } from '#test/support/copies.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { openSurvey } from '#test/support/world.ts';

async function emptyPostgres(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

const KEY = 'fbk_moved';

async function respond(base: string, surveyId: string): Promise<void> {
  const body = JSON.stringify({ surveyId, finished: true, data: { q1: 'Yes' } });
  const reply = await fetch(`${base}/api/v1/client/ws1/responses`, { method: 'POST', body });
  if (reply.status !== 200) throw new Error(`${reply.status} ${await reply.text()}`);
}

/** Returns the number of responses, which triggers keep, because the page is full. */
async function totalAt(base: string): Promise<number> {
  const headers = { 'x-api-key': KEY };
  const reply = await fetch(`${base}/api/v2/management/responses?limit=1`, { headers });
  return JSON.parse(await reply.text()).meta.total;
}

const copy = (from: string, to: string) => apiCommand(['db', 'copy', '--json', '--from', from, '--to', to]);

async function isSame(t: Test, { path }: Source, server: string): Promise<void> {
  const client = new pg.Client({ connectionString: server });
  await client.connect();
  try {
    for (const table of tablesOf(path)) {
      const { rows } = await client.query(`select * from "${table}"`);
      t.strictSame(rows.map(asText).sort(), rowsOf(path, table), table);
    }
  } finally {
    await client.end();
  }
}

t.test('every row of every table is unchanged', async (t) => {
  const source = await oddSource(t);
  const server = await emptyPostgres(t);
  const { code, stdout, stderr } = await apiCli(['db', 'copy', '--from', source.from, '--to', server]);
  t.equal(code, 0, stderr);
  const copied = [...stdout.matchAll(/^\w+ +(\d+)$/gm)].reduce((sum, [, rows]) => sum + Number(rows), 0);
  t.equal(copied, source.rows);
  t.match(stdout, /^responses +30$/m);
  await isSame(t, source, server);

  const occupied = await copy(source.from, server);
  t.equal(occupied.code, 1);
  t.match(occupied.stderr, 'the target is not empty; name an empty database');
  await isSame(t, source, server);
});

t.test(
  'an API moves with its data and its counts; while either runs, the other does not start',
  async (t) => {
    const folder = temporaryFolder(t);
    const path = join(folder, 'source.sqlite');
    const from = `file:${path}`;
    const server = await emptyPostgres(t);
    const env = {
      API_PORT: '0',
      STORAGE_PATH: join(folder, 'uploads'),
      BOOTSTRAP_API_KEY: KEY,
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
    };
    const first = start(['api/main.ts'], { ...env, DATABASE_URL: from });
    t.teardown(() => first.stop());
    const [, before = ''] = await first.until(/API ready on (\S+)/);
    const surveyId = await creatorAt(before, KEY)('management/surveys', {
      workspaceId: 'ws1',
      ...openSurvey,
    });
    for (let at = 0; at < 3; at++) await respond(before, surveyId);
    const refused = await copy(from, server);
    t.equal(refused.code, 1);
    t.match(
      refused.stderr,
      /source\.sqlite is in use by another process, most likely the API; stop it first/,
    );
    t.equal(await first.stop(), 0);

    const alone = openAlone(path);
    const second = start(['api/main.ts'], { ...env, DATABASE_URL: from });
    t.equal(await second.ended(), 1);
    t.match(second.output(), 'The API cannot start:');
    alone.close();

    const moved = await copy(from, server);
    t.equal(moved.code, 0, moved.stderr);
    const api = start(['api/main.ts'], { ...env, DATABASE_URL: server });
    t.teardown(() => api.stop());
    const [, address = ''] = await api.until(/API ready on (\S+)/);
    t.notMatch(api.output(), 'API key', 'the credentials came with the data, so none are printed');
    t.equal(await totalAt(address), 3, 'the copied key is accepted, and the number of responses was copied');
    await respond(address, surveyId);
    t.equal(await totalAt(address), 4, 'the triggers are in force again');
  },
);

t.test(
  'names the table whose rows PostgreSQL refuses, and leaves the target empty for the next copy',
  async (t) => {
    const source = await oddSource(t);
    const server = await emptyPostgres(t);
    for (const [bad, good, message] of [
      [
        `update "languages" set "code" = 'a' || char(0) || 'b' where "rowid" = 3`,
        `update "languages" set "code" = 'a b' where "rowid" = 3`,
        /^the target refuses rows of languages: .*0x00/,
      ],
      [
        `update "languages" set "workspaceId" = 'nobody' where "rowid" = 3`,
        `update "languages" set "workspaceId" = (select min("id") from "workspaces") where "rowid" = 3`,
        /^the target refuses rows of languages: .* violates foreign key constraint/,
      ],
    ] as const) {
      execute(source.path, bad);
      const { code, stderr } = await copy(source.from, server);
      t.equal(code, 1);
      t.match(stderr, message);
      execute(source.path, good);
    }
    const again = await copy(source.from, server);
    t.equal(again.code, 0, again.stderr);
    await isSame(t, source, server);
  },
);
