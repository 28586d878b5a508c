/** Runs the commands of the page on files. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { extensions } from '#api/resources/storage/file-types.ts';
import { readPage } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { startStack } from '#test/support/stack.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('docs/files.md');
const text = (at: number): string => page.blocks[at]?.text ?? '';

t.test('request a grant, upload, read, delete', async (t) => {
  t.equal(page.blocks.map(({ language }) => language).join(' '), 'sh sh sh sh sh sh');
  const { origin, apiKey, workspaceId } = await startStack(t);
  const folder = temporaryFolder(t);
  const picture = Buffer.alloc(5_000, 'a picture ');
  writeFileSync(join(folder, 'logo.png'), picture);
  const shell = startShell(t, folder);
  await shell.run(text(0));
  await shell.run(`BASE=${origin} KEY=${apiKey} WORKSPACE=${workspaceId}`);
  await shell.run(text(1));
  t.equal((await shell.run(text(2))).trim(), '201');
  t.equal((await shell.run(text(3))).trim(), '100');
  t.ok(readFileSync(join(folder, 'copy.png')).equals(picture));
  t.match(JSON.parse(await shell.run(text(4))), { data: 'File deleted successfully' });
  t.match(text(5), /^S3_BUCKET_NAME=\S+ .* \\\nS3_ACCESS_KEY=\S+ S3_SECRET_KEY=\S+ npm start\n$/);
});

t.test('the page lists the accepted types', async (t) => {
  const [row = ''] = page.text.split('\n').filter((line) => line.startsWith('| Which files are accepted?'));
  t.strictSame(
    [...row.matchAll(/`(\w+)`/g)].map(([, extension]) => extension),
    [...extensions],
  );
});
