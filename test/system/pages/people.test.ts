/** Runs each command of the section on people against the product. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { inLink, startMailServer } from '#test/support/smtp.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const { text: page } = readPage('docs/api.md');
const section = /^## People\n(.*?)^## /ms.exec(page)?.[1] ?? '';
const [setUp = ''] = /^BASE=.*?(?=^```)/ms.exec(page) ?? [];
const commands = (/^```sh\n(.*?)^```/ms.exec(section)?.[1] ?? '')
  .replaceAll('\\\n', '')
  .split('\n')
  .filter((line) => line.trim() !== '' && !line.startsWith('#'));

interface Data {
  readonly id: string;
}

t.test('every command, in the order of the page', async (t) => {
  const mails = await startMailServer(t);
  const stack = await startStack(t, { apiEnv: { SMTP_URL: mails.url } });
  const folder = temporaryFolder(t);
  const values = { ORG: '', TEAM: '', WORKSPACE: stack.workspaceId, INVITE: '', USER: '', TOKEN: '' };
  let jar = 'JAR=cookies.txt';
  const sh = async (command: string) => {
    const script = `${setUp.replace('http://localhost:8080', stack.origin)}\n${jar}\n${command}`;
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', ...values },
    });
    return JSON.parse(stdout);
  };
  await sh(
    'curl -s -b $JAR -c $JAR $BASE/api/auth/callback/credentials -d json=true -d "csrfToken=$(csrf)" -d email=owner@example.com -d password=Password1',
  );

  const steps: readonly (readonly [part: string, reply: unknown, then?: (data: Data & Data[]) => unknown])[] =
    [
      ['/api/v1/organizations', { data: [{ role: 'owner' }] }, (data) => (values.ORG = data[0]?.id ?? '')],
      ['/management/workspaces', { data: [{ id: stack.workspaceId }] }],
      ['/teams -d', { data: { name: 'Support' } }, ({ id }) => (values.TEAM = id)],
      ['/workspaces/$WORKSPACE', { data: { workspaces: [{ permission: 'readWrite' }] } }],
      ['/invites -d', { data: { email: 'ben@example.com', link: null } }, ({ id }) => (values.INVITE = id)],
      ['/invites', { data: [{ email: 'ben@example.com' }] }],
      [
        '/resend',
        { data: { link: null } },
        async () => (values.TOKEN = inLink(await mails.mail(2), 'token')),
      ],
      ['/accept-invite', { url: stack.origin }],
      ['/members', { data: [{ role: 'owner' }, { email: 'ben@example.com', role: 'member' }] }],
      ['"role":"manager"', { data: { role: 'manager' } }],
      ['"role":"admin"', { data: { members: [{ role: 'admin' }] } }],
      ['-X DELETE', { data: { email: 'ben@example.com' }, meta: { apiKeyIds: [] } }],
      ['"placement":"center"', { data: { name: 'Shop', placement: 'center' } }],
      ['/workspaces -d', { data: { name: 'Second shop' } }],
    ];
  let step = 0;
  for (const command of commands) {
    if (command.startsWith('JAR=')) {
      jar = command;
      continue;
    }
    const [part, reply, then] = steps[step] ?? ['?', null];
    step += 1;
    t.ok(command.includes(part), `${part} in: ${command}`);
    const answer = await sh(command);
    t.match(answer, reply, part);
    await then?.(answer.data);
    if (part === '/members') values.USER = answer.data[1].id;
  }
  t.equal(step, steps.length, 'the test has a step for each command of the page');
  t.notMatch(stack.api.output(), /ben@example\.com|token=/, 'the log has no address and no link');
});
