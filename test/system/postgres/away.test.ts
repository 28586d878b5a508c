/** The database server dies, hangs and recovers: no acknowledged write is lost, and the API recovers by itself. */
import { pino } from 'pino';
import t, { type Test } from 'tap';
import { addSurvey, startApi, type TestApi, workspaceId } from '#test/support/api-app.ts';
import { type PostgresServer, startPostgres } from '#test/support/postgres-process.ts';
import { until } from '#test/support/until.ts';

const KILLS = 4;
const WRITERS = 8;

interface Line {
  readonly level: number;
  readonly msg: string;
}

async function apiOn(t: Test, server: PostgresServer) {
  const lines: Line[] = [];
  const log = pino({ level: 'info' }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const api = await startApi(t, { env: { DATABASE_URL: server.url }, log, clock: Date.now });
  return { api, lines };
}

const submit = (api: TestApi, surveyId: string, text: string) =>
  api.client('POST', `/api/v1/client/${workspaceId}/responses`, {
    surveyId,
    finished: true,
    data: { q1: text },
  });

t.test('kill -9 in the middle of writes', async (t) => {
  const server = await startPostgres({ isDurable: true });
  t.teardown(() => server.close());
  const { api, lines } = await apiOn(t, server);
  const survey = await addSurvey(api);
  const acknowledged = new Set<string>();
  const statuses = new Map<number, number>();
  let isOver = false;
  let count = 0;
  const write = async (): Promise<void> => {
    while (!isOver) {
      count += 1;
      const text = `answer ${count}`;
      const reply = await submit(api, survey.id, text);
      statuses.set(reply.status, (statuses.get(reply.status) ?? 0) + 1);
      if (reply.status === 200) acknowledged.add(text);
      else {
        t.match(reply.json, { code: 'service_unavailable', message: /database/ }, reply.text);
        t.ok(Number(reply.headers['retry-after']) > 0, 'the reply says when to try again');
        // A refused client does not retry at once.
        await new Promise((resolve) => setTimeout(resolve, 20));
      }
    }
  };
  const writers = Promise.all(Array.from({ length: WRITERS }, write));
  for (let kill = 0; kill < KILLS; kill += 1) {
    const enough = acknowledged.size + 40;
    await until(() => acknowledged.size >= enough);
    await server.kill();
    const refused = (statuses.get(503) ?? 0) + 1;
    await until(() => (statuses.get(503) ?? 0) >= refused);
    await server.restart();
  }
  const more = acknowledged.size + 40;
  await until(() => acknowledged.size >= more);
  isOver = true;
  await writers;
  t.strictSame([...statuses.keys()].toSorted(), [200, 503]);

  const rows = await api.context.db.selectFrom('responses').select('data').execute();
  const stored = new Set(rows.map(({ data }) => JSON.parse(data).q1));
  t.strictSame(
    [...acknowledged].filter((text) => !stored.has(text)),
    [],
    `none of ${acknowledged.size} acknowledged answers is lost`,
  );
  const away = lines.filter(({ msg, level }) => level >= 50 && /cannot be reached/.test(msg));
  const refused = statuses.get(503) ?? 0;
  t.ok(away.length >= 1 && away.length < refused, `${away.length} log lines for ${refused} refused requests`);
  await until(async () => (await api.client('GET', '/ready')).status === 200);
  t.ok(lines.some(({ msg }) => msg === 'the database works again'));
  t.notMatch(JSON.stringify(lines), /answer \d/, 'the log has no answer');
});

t.test('a server that hangs: 503 in time, and recovery when it goes on', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.close());
  const env = { DATABASE_URL: `${server.url}?pool_size=3&statement_timeout=1000` };
  const api = await startApi(t, { env, clock: Date.now });
  const survey = await addSurvey(api);
  server.freeze();
  const replies = await Promise.all(['a', 'b', 'c', 'd', 'e'].map((text) => submit(api, survey.id, text)));
  t.strictSame(new Set(replies.map(({ status }) => status)), new Set([503]));
  t.match((await api.client('GET', '/ready')).status, 503);
  server.thaw();
  await until(async () => (await submit(api, survey.id, 'again')).status === 200, 'it recovers');
});

t.test('a server that restarts between requests causes no error', async (t) => {
  const server = await startPostgres();
  t.teardown(() => server.close());
  const { api } = await apiOn(t, server);
  const survey = await addSurvey(api);
  await server.kill();
  await server.restart();
  t.equal((await submit(api, survey.id, 'x')).status, 200);
  t.equal((await api.client('GET', '/ready')).status, 200);
});
