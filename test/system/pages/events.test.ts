/** Runs the commands of the page on events, with a receiver of the test. */
import { sql } from 'kysely';
import t from 'tap';
import { startReceiver } from '#test/api/events/support.ts';
import { readPage } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { openTestDatabase, sharedDatabase } from '#test/support/database.ts';
import { projectRoot } from '#test/support/process.ts';
import { startStack } from '#test/support/stack.ts';
import { until } from '#test/support/until.ts';

const { blocks } = readPage('docs/events.md');
const text = (at: number): string => blocks[at]?.text ?? '';

t.test('create a webhook, verify the delivery, deliver it again', async (t) => {
  t.equal(blocks.map(({ language }) => language).join(' '), 'sh sh js sql sql sh');
  const { url: hook, received } = await startReceiver(t, (response) => response.end('thanks'));
  const arrived = (count: number): Promise<void> => until(() => received.length >= count);

  const DATABASE_URL = await sharedDatabase(t);
  const stack = await startStack(t, { apiEnv: { DATABASE_URL, WEBHOOK_ALLOWED_TARGETS: '127.0.0.0/8' } });
  const shell = startShell(t, projectRoot);
  await shell.run(text(0));
  await shell.run(`BASE=${stack.origin} KEY=${stack.apiKey} WORKSPACE=${stack.workspaceId}`);
  const made = JSON.parse(await shell.run(text(1).replace('https://example.com/hook', hook)));
  t.match(made, { data: { url: hook, secret: /^whsec_/ } });

  const survey = await stack.manage('POST', '/api/v1/management/surveys', {
    workspaceId: stack.workspaceId,
    name: 'A survey',
    type: 'link',
    status: 'inProgress',
    questions: [
      { id: 'q1', type: 'openText', headline: { default: 'Why?' }, required: false, inputType: 'text' },
    ],
  });
  const { id: surveyId } = survey as { id: string };
  await stack.manage('POST', '/api/v1/management/responses', {
    surveyId,
    data: { q1: 'Because' },
    finished: true,
  });
  await arrived(1);
  const [event] = received;
  const { webhookId, event: type, data } = event?.json ?? {};
  t.match({ webhookId, type }, { webhookId: made.data.id, type: 'responseFinished' });
  t.match(data, { surveyId, survey: { title: 'A survey', type: 'link', status: 'inProgress' } });

  const verify = `const rawBody = process.env.BODY;
    const request = { headers: JSON.parse(process.env.HEADERS) };
    ${text(2)}
    console.log(event.event);`;
  const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;
  const verified = await shell.run(
    `BODY=${quoted(event?.text ?? '')} HEADERS=${quoted(JSON.stringify(event?.headers))} SECRET=${made.data.secret} ` +
      `${process.execPath} --input-type=module -e ${quoted(verify)}`,
  );
  t.equal(verified.trim(), 'responseFinished');

  const db = openTestDatabase(DATABASE_URL);
  t.teardown(() => db.destroy());
  const query = text(3).replace('WEBHOOK', webhookId);
  const deliveries = async () => (await sql.raw<{ id: string; status: string }>(query).execute(db)).rows;
  const isDelivered = async (): Promise<boolean> => (await deliveries())[0]?.status === 'delivered';
  await until(isDelivered, 'the delivery is settled', stack.api);
  const [delivery] = await deliveries();
  t.match(delivery, { number: 1, statusCode: 200, reply: 'thanks', error: null });
  await sql.raw(text(4).replace('DELIVERY', delivery?.id ?? '')).execute(db);
  await arrived(2);
  t.equal(received[1]?.text, event?.text, 'the body is the same');
  t.equal(received[1]?.headers['webhook-id'], event?.headers['webhook-id'], 'the id is the same');
  t.match(text(5), /^WEBHOOK_ALLOWED_TARGETS=\S+ npm start\n$/);
});
