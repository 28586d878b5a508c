/** kill -9 of one of two API processes in the middle of writes: the other goes on, and nothing acknowledged is lost. */
import { randomInt } from 'node:crypto';
import { join } from 'node:path';
import t from 'tap';
import { toTimestamp } from '#api/timestamps.ts';
import { startReceiver } from '#test/api/events/support.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { freePort } from '#test/support/ports.ts';
import { start } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';
import { until } from '#test/support/until.ts';

const RESPONSES = 300;
const SENDERS = 8;
/** The lease of a delivery, its first pause, and room for a busy machine. */
const SETTLE_MS = 90_000;

t.test('the other takes over', { timeout: 250_000 }, async (t) => {
  const folder = temporaryFolder(t);
  const url = await sharedDatabase(t);
  const ports = [await freePort(), await freePort()];
  const processes = ports.map((port) =>
    start(['api/main.ts'], {
      API_PORT: String(port),
      DATABASE_URL: url,
      STORAGE_PATH: join(folder, 'uploads'),
      BOOTSTRAP_WORKSPACE_ID: 'ws1',
      BOOTSTRAP_API_KEY: 'fbk_kill',
      BOOTSTRAP_PASSWORD: 'Password1',
      RATE_LIMITING_DISABLED: '1',
      DANGEROUSLY_ALLOW_WEBHOOK_INTERNAL_URLS: '1',
      LOG_LEVEL: 'error',
    }),
  );
  t.teardown(() => Promise.all(processes.map((one) => one.stop('SIGKILL'))));
  await Promise.all(processes.map((one) => one.until(/API ready/)));
  const bases = ports.map((port) => `http://127.0.0.1:${port}`);
  // One that takes its time has deliveries of the victim under way when it is killed.
  const receiver = await startReceiver((response) => {
    setTimeout(() => response.writeHead(204).end(), randomInt(30));
  });
  t.teardown(() => receiver.close());
  const db = openTestDatabase(url);
  t.teardown(() => db.destroy());

  const manage = async (path: string, body: object): Promise<string> => {
    const reply = await fetch(`${bases[1]}/api/v1/${path}`, {
      method: 'POST',
      headers: { 'x-api-key': 'fbk_kill' },
      body: JSON.stringify(body),
    });
    if (reply.status !== 200) throw new Error(await reply.text());
    const { data } = (await reply.json()) as { data: { id: string } };
    return data.id;
  };
  const questions = [{ id: 'q1', type: 'openText', headline: 'What?' }];
  const survey = { workspaceId: 'ws1', name: 'S', type: 'link', status: 'inProgress', questions };
  const surveyId = await manage('management/surveys', survey);
  await manage('webhooks', { workspaceId: 'ws1', url: receiver.url, triggers: ['responseCreated'] });

  const acknowledged: string[] = [];
  let failed = 0;
  let isKilled = false;
  const killAt = RESPONSES / 3;
  const send = async (): Promise<void> => {
    const base = bases[isKilled ? 1 : randomInt(2)] ?? '';
    try {
      const reply = await fetch(`${base}/api/v1/client/ws1/responses`, {
        method: 'POST',
        body: JSON.stringify({ surveyId, finished: false, data: { q1: 'Yes' } }),
      });
      const { data } = (await reply.json()) as { data: { id: string } };
      if (reply.status !== 200) throw new Error(`answered ${reply.status}`);
      acknowledged.push(data.id);
    } catch (error) {
      failed += 1;
      if (base === bases[1]) t.fail(`the other one failed: ${error}`);
    }
    if (acknowledged.length >= killAt && !isKilled) {
      isKilled = true;
      processes[0]?.child.kill('SIGKILL');
    }
  };
  await Promise.all(
    Array.from({ length: SENDERS }, async () => {
      while (acknowledged.length < RESPONSES) await send();
    }),
  );
  await processes[0]?.ended();
  t.ok(failed <= SENDERS, `${failed} requests were cut: those that were on their way`);

  const stored = await db.selectFrom('responses').select('id').execute();
  const ids = new Set(stored.map(({ id }) => id));
  t.strictSame(
    acknowledged.filter((id) => !ids.has(id)),
    [],
    'what was acknowledged is there',
  );

  // As the victim would have left it in the middle of a job.
  await db
    .updateTable('surveys')
    .set({ closeOn: toTimestamp(Date.now() - 1_000) })
    .execute();
  await db
    .updateTable('scheduledJobs')
    .set({ lease: 'of the dead', dueAt: toTimestamp(Date.now() + 1_000) })
    .where('name', '=', 'moveSurveys')
    .execute();
  const statusNow = async () => (await db.selectFrom('surveys').select('status').executeTakeFirst())?.status;
  await until(async () => (await statusNow()) === 'completed', SETTLE_MS);

  const delivered = (): Set<string> => new Set(receiver.received.map(({ json }) => json.data.id));
  await until(() => acknowledged.every((id) => delivered().has(id)), SETTLE_MS);
  const open = async () =>
    (await db.selectFrom('deliveries').select('id').where('status', '=', 'pending').execute()).length;
  await until(async () => (await open()) === 0, SETTLE_MS);
  t.ok(delivered().size >= RESPONSES, 'its leases came back');

  t.equal((await fetch(`${bases[1]}/health`)).status, 200);
  t.equal(await processes[1]?.stop(), 0);
  const [complaint = ''] = /"level":50.*/.exec(processes[1]?.output() ?? '') ?? [];
  t.equal(complaint.slice(0, 300), '');
});
