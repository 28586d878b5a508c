/** Runs the commands of the page on events, with a receiver of the test. */
import { createServer, type IncomingHttpHeaders } from 'node:http';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { projectRoot } from '#test/support/process.ts';
import { startStack } from '#test/support/stack.ts';

const { blocks } = readPage('docs/events.md');
const text = (at: number): string => blocks[at]?.text ?? '';

interface Received {
  readonly headers: IncomingHttpHeaders;
  readonly body: string;
}

t.test('create a webhook, test it, verify the delivery, deliver it again', async (t) => {
  t.equal(blocks.map(({ language }) => language).join(' '), 'sh sh sh js sh sh sh sh');
  const received: Received[] = [];
  const waiting: (() => void)[] = [];
  const receiver = createServer((req, res) => {
    let body = '';
    req.on('data', (chunk: Buffer) => {
      body += chunk.toString();
    });
    req.on('end', () => {
      received.push({ headers: req.headers, body });
      res.end('thanks');
      for (const check of waiting) check();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    receiver.closeAllConnections();
    return new Promise((resolve) => receiver.close(resolve));
  });
  const address = receiver.address();
  const hook = `http://127.0.0.1:${typeof address === 'object' && address !== null ? address.port : 0}/hook`;
  const arrived = (count: number): Promise<void> =>
    new Promise((resolve) => {
      const check = (): void => {
        if (received.length >= count) resolve();
      };
      waiting.push(check);
      check();
    });

  const stack = await startStack(t, { apiEnv: { WEBHOOK_ALLOWED_TARGETS: '127.0.0.0/8' } });
  const shell = startShell(t, projectRoot);
  await shell.run(text(0));
  await shell.run(`BASE=${stack.origin} KEY=${stack.apiKey} WORKSPACE=${stack.workspaceId}`);
  const made = JSON.parse(await shell.run(text(1).replace('https://example.com/hook', hook)));
  t.match(made, { data: { url: hook, secret: /^whsec_/ } });
  t.match(JSON.parse(await shell.run(text(2))), {
    data: { isDelivered: true, statusCode: null, reply: 'hidden' },
  });
  t.match(received[0]?.body, '{"event":"testEndpoint"}');

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
  await arrived(2);
  const [, event] = received;
  const { webhookId, event: type, data } = JSON.parse(event?.body ?? '{}');
  t.match({ webhookId, type }, { webhookId: made.data.id, type: 'responseFinished' });
  t.match(data, { surveyId, survey: { title: 'A survey', type: 'link', status: 'inProgress' } });

  const verify = `const rawBody = process.env.BODY;
    const request = { headers: JSON.parse(process.env.HEADERS) };
    ${text(3)}
    console.log(event.event);`;
  const quoted = (value: string): string => `'${value.replaceAll("'", "'\\''")}'`;
  const verified = await shell.run(
    `BODY=${quoted(event?.body ?? '')} HEADERS=${quoted(JSON.stringify(event?.headers))} SECRET=${made.data.secret} ` +
      `${process.execPath} --input-type=module -e ${quoted(verify)}`,
  );
  t.equal(verified.trim(), 'responseFinished');

  const listed = JSON.parse(await shell.run(text(4)));
  t.match(listed.data[0], { event: 'responseFinished', webhookId, attempts: Array });
  await shell.run(text(5));
  await shell.run(`DELIVERY=${listed.data[0].id}`);
  await shell.run(text(6));
  await arrived(3);
  t.equal(received[2]?.body, event?.body, 'the body is the same');
  t.equal(received[2]?.headers['webhook-id'], event?.headers['webhook-id'], 'the id is the same');
  t.match(text(7), /^WEBHOOK_ALLOWED_TARGETS=\S+ npm start\n$/);
});
