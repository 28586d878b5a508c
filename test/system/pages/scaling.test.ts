/** Runs the commands of the page on scaling, on servers of the test. */
import { execFileSync } from 'node:child_process';
import { existsSync, globSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { post } from '#test/api/storage/conformance.ts';
import { readPage, tableOf } from '#test/docs/pages.ts';
import { startShell } from '#test/docs/shell.ts';
import { type ApiProcess, startApiProcess } from '#test/support/api-process.ts';
import { apiCli } from '#test/support/cli.ts';
import { createPostgresDatabase } from '#test/support/postgres.ts';
import { projectRoot } from '#test/support/process.ts';
import { startS3 } from '#test/support/s3.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const page = readPage('docs/scaling.md');
const blocks = page.blocks.filter(({ language }) => language === 'sh').map(({ text }) => text);
const blockWith = (words: string): string => {
  const found = blocks.filter((text) => text.includes(words));
  if (found.length !== 1) throw new Error(`${found.length} blocks have "${words}"`);
  return found[0] ?? '';
};

const COPIED = /^organizations +1$/m;
const KEY = 'fbk_scaling';
const WORKSPACE = 'cscaling00000000000000000';

async function emptyDatabase(t: Test): Promise<string> {
  const { url, drop } = await createPostgresDatabase('empty');
  t.teardown(drop);
  return url;
}

const startApi = (t: Test, env: Record<string, string>): Promise<ApiProcess> =>
  startApiProcess(t, { BOOTSTRAP_API_KEY: KEY, BOOTSTRAP_WORKSPACE_ID: WORKSPACE, ...env });

async function upload(origin: string, file: Buffer): Promise<string> {
  const reply = await fetch(`${origin}/api/v1/management/storage`, {
    method: 'POST',
    headers: { 'x-api-key': KEY, 'content-type': 'application/json' },
    body: JSON.stringify({ workspaceId: WORKSPACE, fileName: 'a logo ü.png', fileType: 'image/png' }),
  });
  const { signedUrl, presignedFields, fileUrl } = JSON.parse(await reply.text()).data;
  const target = new URL(new URL(signedUrl).pathname, origin).href;
  const stored = await post({ url: target, fields: presignedFields }, file);
  if (stored.status !== 201) throw new Error(stored.text);
  return new URL(fileUrl).pathname;
}

t.test('copy to PostgreSQL, back up and restore, as the page says', async (t) => {
  const folder = temporaryFolder(t);
  const [target, restored] = [await emptyDatabase(t), await emptyDatabase(t)];
  const s3 = await startS3(t);
  const local = { DATABASE_URL: `file:${folder}/floodgate.sqlite`, STORAGE_PATH: join(folder, 'uploads') };
  const programs = globSync('/usr/lib/postgresql/*/bin');
  const shell = startShell(t, projectRoot, {
    PATH: [join(projectRoot, 'node_modules/.bin'), process.env.PATH, ...programs].join(':'),
    RESTORED: restored,
  });
  const run = (words: string): Promise<string> =>
    shell.run(blockWith(words).replaceAll(/\.\/data\b/g, folder));

  const api = await startApi(t, local);
  const picture = Buffer.alloc(20_000, 'a picture ');
  const path = await upload(api.origin, picture);

  await run('SOURCE=');
  await shell.run(`TARGET=${target}`);
  await t.rejects(run('db -- copy --from $SOURCE'), /is in use/);
  await api.stop();
  t.match(await run('db -- copy --from $SOURCE'), COPIED);
  const files = blockWith('S3_ENDPOINT_URL')
    .replaceAll(/\.\/data\b/g, folder)
    .replace('https://s3.example.com', s3.endpoint)
    .replace('S3_ACCESS_KEY=…', `S3_ACCESS_KEY=${s3.credentials.accessKey}`)
    .replace('S3_SECRET_KEY=…', `S3_SECRET_KEY=${s3.credentials.secretKey}`);
  t.match(await shell.run(files), /^copied +1$/m);

  const moved = await startApi(t, {
    DATABASE_URL: target,
    S3_BUCKET_NAME: 'uploads',
    S3_ENDPOINT_URL: s3.endpoint,
    S3_FORCE_PATH_STYLE: '1',
    S3_ACCESS_KEY: s3.credentials.accessKey,
    S3_SECRET_KEY: s3.credentials.secretKey,
  });
  const read = await fetch(moved.origin + path);
  t.ok(Buffer.from(await read.arrayBuffer()).equals(picture), 'the address of the file is the same');
  await moved.stop();

  await run('backup.sqlite --from');
  rmSync(`${folder}/floodgate.sqlite`);
  await run('rm -f');
  const again = await startApi(t, local);
  t.equal((await fetch(again.origin + path)).status, 200, 'the restored backup has the survey');
  await again.stop();

  await run('pg_dump');
  const restoredApi = await startApi(t, { DATABASE_URL: restored, STORAGE_PATH: join(folder, 'uploads') });
  t.equal((await fetch(restoredApi.origin + path)).status, 200, 'the restored server has the file');
  await restoredApi.stop();
  execFileSync('mkdir', ['-p', join(folder, 'restored')]);
  await run('tar -cf');
  t.ok(existsSync(join(folder, 'restored/uploads/objects')));
});

t.test('the table of commands is that of the program', async (t) => {
  const shown = tableOf(page, 'Command', 'What it does').map(([command = '']) => command.replaceAll('`', ''));
  const helps = new Map<string, string>();
  for (const command of shown) {
    const [group = '', name = '', ...options] = command.split(' ');
    const help = helps.get(group + name) ?? (await apiCli([group, name, '--help'])).stdout;
    helps.set(group + name, help);
    t.match(help, `main.ts ${group} ${name}`);
    for (const option of options.filter((one) => one.startsWith('--'))) t.match(help, option, command);
  }
  t.equal(shown.length, 3);
});
