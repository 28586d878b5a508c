/**
 * The sections on accounts and workspaces are true: each of their commands is run as it stands there, one after the
 * other, against the product as it runs, through the gateway, with mails read from a real SMTP server.
 */
import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { projectRoot, start } from '#test/support/process.ts';
import { inLink, startMailServer } from '#test/support/smtp.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const { text: page } = readPage('docs/api.md');
const blocksOf = (heading: string): string[] => {
  const section = new RegExp(`^## ${heading}\\n(.*?)^## `, 'ms').exec(page)?.[1] ?? '';
  return [...section.matchAll(/^```sh\n(.*?)^```/gms)].map(([, text = '']) => text);
};
const commandsIn = (blocks: readonly string[]): string[] =>
  blocks
    .join('')
    .replaceAll('\\\n', '')
    .split('\n')
    .filter((line) => line.trim() !== '' && !line.startsWith('#'));
const [setUp = '', ...blocks] = blocksOf('Accounts');
const commands = commandsIn(blocks);

interface Step {
  /** A text that identifies the command. */
  readonly part: string;
  readonly reply: unknown;
  /** The mail that it causes. */
  readonly mail?: { readonly to: string; readonly subject: string };
}

t.test('every command, in the order of the page', async (t) => {
  const mails = await startMailServer(t);
  const { origin, workspaceId } = await startStack(t, {
    apiEnv: { SIGNUP_ENABLED: '1', SMTP_URL: mails.url, MAIL_FROM: 'Floodgate <feedback@example.com>' },
  });
  const folder = temporaryFolder(t);
  t.match(setUp, 'BASE=http://localhost:8080\n', 'the address of npm start');
  const prepared = setUp.replace('http://localhost:8080', origin);
  const values = { TOKEN: '', ORG: '', WORKSPACE: workspaceId };
  const sh = async (command: string): Promise<unknown> => {
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', `${prepared}\n${command}`], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', ...values },
    });
    return stdout.startsWith('{') ? JSON.parse(stdout) : stdout.trim();
  };

  const steps: readonly Step[] = [
    {
      part: '/auth/signup',
      reply: '/auth/verification-requested?notice=sent',
      mail: { to: 'ada@example.com', subject: 'Confirm your e-mail address' },
    },
    { part: '/api/auth/callback/token', reply: { url: origin } },
    { part: '/api/auth/callback/credentials', reply: { url: origin } },
    { part: '/api/auth/session', reply: { user: { email: 'ada@example.com' }, expires: String } },
    {
      part: '/account/email',
      reply: '/account?notice=mailed',
      mail: { to: 'new@example.com', subject: 'Confirm your new e-mail address' },
    },
    { part: '/api/auth/signout', reply: { url: origin } },
    {
      part: '/auth/forgot-password',
      reply: '/auth/forgot-password?notice=sent',
      mail: { to: 'ada@example.com', subject: 'Choose a new password' },
    },
    { part: '/forgot-password/reset', reply: '/auth/login?notice=password-changed' },
  ];
  t.equal(commands.length, steps.length, 'the test has a step for each command of the page');
  let mailCount = 0;
  for (const [i, { part, reply, mail }] of steps.entries()) {
    const command = commands[i] ?? '';
    t.ok(command.includes(part), `${part} in: ${command}`);
    const answer = await sh(command);
    t.match(answer, reply, part);
    t.notMatch(JSON.stringify(answer), /error=/);
    if (mail !== undefined) {
      mailCount += 1;
      const received = await mails.mail(mailCount);
      t.strictSame(received.to, [mail.to]);
      t.equal(received.headers.subject, mail.subject);
      t.match(received.text, `${origin}/`, 'the link leads through the gateway');
      values.TOKEN = inLink(received, 'token');
    }
  }

  // The commands had the effects that the text describes.
  const command = (part: string): string => commands.find((line) => line.includes(part)) ?? part;
  t.match(await sh(command('/forgot-password/reset')), { code: 'bad_request' }, 'a link works once');
  t.match(await sh(command('callback/credentials')), { url: /error=/ }, 'the old password is refused');
  const newPassword = command('callback/credentials').replace('Password1', 'Password2');
  t.match(await sh(newPassword), { url: origin }, 'the new password is accepted');

  const owner = command('callback/credentials').replace('ada@example.com', 'owner@example.com');
  t.match(await sh(owner), { url: origin }, 'the owner of the first start');
  const replies = [
    { data: [{ id: workspaceId }] },
    { data: { name: 'Shop', placement: 'center' } },
    { data: { name: 'Second shop' } },
  ];
  const [blockOfWorkspaces = ''] = blocksOf('Workspaces');
  const ofWorkspaces = commandsIn([blockOfWorkspaces]);
  t.equal(ofWorkspaces.length, replies.length);
  for (const [i, line] of ofWorkspaces.entries()) {
    const answer = (await sh(line)) as { data: { organizationId: string }[] };
    t.match(answer, replies[i] ?? {}, line);
    if (i === 0) values.ORG = answer.data[0]?.organizationId ?? '';
  }
});

t.test('without SMTP_URL the command on the page shows the latest mail', async (t) => {
  const folder = temporaryFolder(t);
  const api = start([join(projectRoot, 'api/main.ts')], { API_PORT: '0', SIGNUP_ENABLED: '1' }, folder);
  t.teardown(() => api.stop('SIGKILL'));
  const [, address] = await api.until(/API ready on (\S+)/);
  const script = /^npx node -p '(.+)'$/m.exec(page)?.[1] ?? '';
  for (const name of ['first', 'second']) {
    const command = `form /auth/signup -d name=Ada -d email=${name}@example.com -d password=Password1`;
    const prepared = setUp.replace('http://localhost:8080', String(address));
    await run('bash', ['-euo', 'pipefail', '-c', `${prepared}\n${command}`], { cwd: folder });
  }
  const { stdout } = await run(process.execPath, ['-p', script], { cwd: folder });
  t.match(stdout, /\/auth\/verify\?token=[\w-]{43}\n/);
  t.equal(await api.stop(), 0);
});
