/** Runs each command of the section on workspaces against the product. */
import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const { text: page } = readPage('docs/api.md');
const section = /^## Workspaces\n(.*?)^## /ms.exec(page)?.[1] ?? '';
const [setUp = ''] = /^BASE=.*?(?=^```)/ms.exec(page) ?? [];
const commands = (/^```sh\n(.*?)^```/ms.exec(section)?.[1] ?? '')
  .split('\n')
  .filter((line) => line.trim() !== '' && !line.startsWith('#'));

t.test('every command, in the order of the page', async (t) => {
  const stack = await startStack(t);
  const folder = temporaryFolder(t);
  const values = { ORG: '', WORKSPACE: stack.workspaceId };
  const sh = async (command: string) => {
    const script = `${setUp.replace('http://localhost:8080', stack.origin)}\n${command}`;
    const { stdout } = await run('bash', ['-euo', 'pipefail', '-c', script], {
      cwd: folder,
      env: { PATH: process.env.PATH ?? '', ...values },
    });
    return JSON.parse(stdout);
  };
  await sh(
    'curl -s -b $JAR -c $JAR $BASE/api/auth/callback/credentials -d json=true -d "csrfToken=$(csrf)" -d email=owner@example.com -d password=Password1',
  );
  const replies = [
    { data: [{ id: stack.workspaceId }] },
    { data: { name: 'Shop', placement: 'center' } },
    { data: { name: 'Second shop' } },
  ];
  t.equal(commands.length, replies.length);
  for (const [i, command] of commands.entries()) {
    const { data } = await sh(command);
    t.match({ data }, replies[i] ?? {}, command);
    if (i === 0) values.ORG = data[0].organizationId;
  }
});
