/** Runs every block of the first tour, and compares the output with the page. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { readPage } from '#test/docs/pages.ts';
import { comparable, startProduct } from '#test/docs/product.ts';
import { startShell } from '#test/docs/shell.ts';
import { startUpstream } from '#test/support/gateway.ts';
import { policiesWithoutEdges } from '#test/support/policies-without-edges.ts';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const { blocks } = readPage('docs/getting-started.md');
const text = (at: number): string => blocks[at]?.text ?? '';

t.test('this test runs all code blocks of the page', async (t) => {
  t.strictSame(
    blocks.map(({ language }) => language).join(' '),
    'sh sh sh http sh http sh sh http sh sh text sh',
  );
  t.equal(text(0), 'npm ci\nnpm start\n');
});

t.test('look at a limit, and exceed it', async (t) => {
  const product = await startProduct(t, 'npm start', { GATEWAY_POLICIES: policiesWithoutEdges(t) });
  const [, workspace = ''] = await product.until(/workspace id {2}(\S+)/);
  const [, key = ''] = await product.until(/API key {7}(\S+)/);
  const shell = startShell(t, temporaryFolder(t));
  await shell.run(text(1));
  await shell.run(`BASE=${product.origin} KEY=${key} WORKSPACE=${workspace}`);

  const shows = async (command: number, shown: number): Promise<void> => {
    const lines = comparable(await shell.run(text(command)));
    for (const line of comparable(text(shown))) t.ok(lines.includes(line), line);
  };
  await shows(2, 3);
  await shows(4, 5);
  t.equal((await shell.run(text(6))).trim(), '400\n400\n400\n400\n429');
  await shows(7, 8);
});

t.test('change a limit', async (t) => {
  // A separate folder, in which the copy may be edited.
  const folder = temporaryFolder(t);
  const [copy = '', begin = ''] = text(9).trim().split('\n');
  const shell = startShell(t, projectRoot);
  const mine = join(folder, 'my-policies.yaml');
  await shell.run(copy.replace('my-policies.yaml', mine));
  const product = await startProduct(t, begin.replace('my-policies.yaml', mine));

  const original = readFileSync(mine, 'utf8');
  const edit = (limit: string): void =>
    writeFileSync(
      mine,
      original.replace(/(name: management-storage\n(?:.*\n){2} {4}limit: )5/, `$1${limit}`),
    );
  edit('50');
  await product.until(/the edited policy file is in use/);
  edit('fifty');
  await product.until(/the edited policy file is refused/);
  const checking = shell.run(text(10).replace('my-policies.yaml', mine));
  await t.rejects(checking, { message: text(11).replace('my-policies.yaml', mine) });
});

t.test('in front of an application', async (t) => {
  const upstream = await startUpstream(t, (_req, res) => res.end('the application'));
  const command = text(12)
    .replace('http://127.0.0.1:3000', upstream.origin)
    .replace('my-policies.yaml', policiesWithoutEdges(t));
  const product = await startProduct(t, command);
  t.equal(await (await fetch(product.origin)).text(), 'the application');
});
