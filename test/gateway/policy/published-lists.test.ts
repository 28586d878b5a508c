/** Tests that lists of crawlers and of networks load as other projects publish them. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { send } from '#test/gateway/proxy/exchange.ts';
import { floodgateCommand } from '#test/support/cli.ts';
import { policyFile, startTestGateway } from '#test/support/gateway.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const ALL = policyFile('name: all, route: "* *", identifier: ip, limit: 1000, window: 366d');

function folderOf(t: Test, lists: string, files: Readonly<Record<string, string>>): string {
  const folder = temporaryFolder(t);
  writeFileSync(join(folder, 'policies.yaml'), `${lists}\n${ALL}`);
  for (const [name, text] of Object.entries(files)) writeFileSync(join(folder, name), text);
  return folder;
}

async function checked(t: Test, lists: string, files: Readonly<Record<string, string>>) {
  const cwd = folderOf(t, lists, files);
  const { code, stdout } = await floodgateCommand(['check', '--json'], { cwd });
  const { problems, warnings } = JSON.parse(stdout);
  const messages = (all: { message: string; fix: string }[]): string[] =>
    all.map(({ message, fix }) => `${message}; ${fix}`).filter((text) => !/api-key/.test(text));
  return { code, problems: messages(problems), warnings: messages(warnings) };
}

t.test('a line that cannot be used is a mistake that names lenient, or skipped with a warning', async (t) => {
  const files = { 'bots.txt': 'GPTBot\nbad(bot)*\n198.51.100.0/33\nMozilla/5.0 (X11)\n1O.0.0.0/8\n' };
  const strict = await checked(t, 'deny: [{ file: bots.txt }]', files);
  t.equal(strict.code, 1);
  t.strictSame(strict.problems.length, 4);
  for (const problem of strict.problems)
    t.match(problem, /^bots\.txt:[2-5]: ".*" is neither an address nor a network.*lenient: true/);
  const lenient = await checked(t, 'deny: [{ file: bots.txt, lenient: true }]', files);
  t.match(lenient, { code: 0, problems: [] });
  t.strictSame(lenient.warnings.length, 1);
  t.match(
    lenient.warnings[0],
    /^4 lines of bots\.txt are skipped, such as line 2: "bad\(bot\)\*" is neither/,
  );
  t.match((await checked(t, 'deny: [{ address: 192.0.2.1, lenient: true }]', {})).problems, [
    /lenient is for a file/,
  ]);
  t.match(await checked(t, 'deny: [{ file: bots.txt, lenient: true }]', { 'bots.txt': '(\n' }), {
    code: 0,
    warnings: [/has no entries/, /1 line of bots\.txt is skipped/],
  });
});

t.test('the log warns of skipped lines, also after an edit of the list', async (t) => {
  const folder = folderOf(t, 'deny: [{ file: bots.txt, lenient: true }]', { 'bots.txt': 'GPTBot\n(\n' });
  const env = { GATEWAY_POLICIES: join(folder, 'policies.yaml') };
  const { port, logged } = await startTestGateway(t, { env });
  await logged(/1 line of bots\.txt is skipped, such as line 2/);
  writeFileSync(join(folder, 'bots.txt'), 'OtherBot\n(\n)\n');
  await logged(/2 lines of bots\.txt are skipped, such as line 2/);
  t.equal((await send(port, '/', { headers: { 'user-agent': 'OtherBot' } })).status, 429);
});

t.test('an allowed list has no programs, also if it is lenient', async (t) => {
  const files = { 'friends.txt': '192.0.2.7\nGoogle Bot\n' };
  t.match(await checked(t, 'allow: [{ file: friends.txt }]', files), {
    code: 1,
    problems: [/^friends\.txt:2: "Google Bot" is neither an address nor a network/],
  });
  t.match(await checked(t, 'allow: [{ file: friends.txt, lenient: true }]', files), {
    code: 0,
    warnings: [/^1 line of friends\.txt is skipped/],
  });
});
