/** GNU Wget. */
import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { reportsWithout, startDemo, takeSteps, UPLOAD_BYTES } from '#test/support/clients/demo.ts';
import { outputOf, runProgram } from '#test/support/neighbour.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const folder = temporaryFolder(t);
writeFileSync(join(folder, 'upload'), 'u'.repeat(UPLOAD_BYTES));
const demo = await startDemo(t);

interface Got {
  readonly status: string;
  readonly body: string;
  /** Messages, with the fields of all replies. */
  readonly messages: string;
  field(name: string): string;
}

/** Runs it for one file. Its exit code says that a status is no success. */
async function wget(...args: readonly string[]): Promise<Got> {
  const command = ['wget', '-S', '--content-on-error', '--tries=1', '-O', '-', ...args];
  const { stdout, stderr } = await runProgram(command, { cwd: folder });
  const statuses = [...stderr.matchAll(/^ +HTTP\/1\.1 (\d+)/gm)];
  return {
    status: statuses.at(-1)?.[1] ?? stderr,
    body: stdout,
    messages: stderr,
    field: (name) => new RegExp(`^ +${name}: (.*)$`, 'im').exec(stderr)?.[1] ?? 'none',
  };
}

async function text(...args: readonly string[]): Promise<string> {
  const { status, body } = await wget(...args);
  return `${status} ${body}`;
}

async function downloaded(url: string): Promise<string> {
  const { status, body } = await wget(url);
  return `${status} ${body.length} ${body.slice(-3)}`;
}

async function steps(origin: string): Promise<unknown> {
  const head = await wget('--method=HEAD', `${origin}/download/length`);
  const none = await wget('--method=DELETE', `${origin}/none`);
  // With a field of its own it would wait for a body of the 304 until the connection closes.
  rmSync(join(folder, 'tagged'), { force: true });
  await runProgram(['wget', '-N', `${origin}/tagged`], { cwd: folder });
  const known = await runProgram(['wget', '-N', '-S', `${origin}/tagged`], { cwd: folder });
  const [, notModified, tag] = /HTTP\/1\.1 (304)[\s\S]*^ +etag: (.*)$/im.exec(known.stderr) ?? [];
  const busy = await wget(`${origin}/busy`);
  // It resumes a file of which it has the beginning.
  writeFileSync(join(folder, 'range'), 'abcde');
  const resumed = await runProgram(['wget', '-S', '-c', `${origin}/range`], { cwd: folder });
  const range = /content-range: (.*)/i.exec(resumed.stderr)?.[1];
  const rest = (await outputOf(['cat', 'range'], { cwd: folder })).slice(5);
  const three = await wget(`${origin}/echo`, `${origin}/folder/`, `${origin}/echo`);
  const reused = three.messages.match(/Reusing existing connection/g)?.length ?? 0;
  const cookies = ['--keep-session-cookies', `${origin}/cookies/set`];
  return {
    get: await text(`${origin}/echo?q=1`),
    encoded: await text(`${origin}/echo/a%20b%7Ec%2Fd;e=f//g?x=%2F+%20&y`),
    redirect: await text(`${origin}/redirect?status=302&to=/folder`),
    'redirect 307': await text(
      '--method=PUT',
      '--body-file=upload',
      `${origin}/redirect?status=307&to=/upload`,
    ),
    cookies: await text(...cookies),
    upload: await text('--method=POST', '--body-file=upload', `${origin}/upload`),
    'download length': await downloaded(`${origin}/download/length`),
    'download chunked': await downloaded(`${origin}/download/chunked`),
    head: `${head.status} ${head.field('content-length')} ${head.body.length}`,
    'no content': `${none.status} ${none.body.length}`,
    'not modified': `${notModified} ${tag} ${known.stdout.length}`,
    range: `206 ${range} ${rest}`,
    gzip: await text('--compression=gzip', `${origin}/gzip`),
    refused: await text('--method=POST', '--body-file=upload', `${origin}/refuse`),
    busy: `${busy.status} ${busy.field('retry-after')} ${busy.body}`,
    'keep-alive': `${reused + 1} requests, 1 connection`,
  };
}

t.test('wget', async (t) => {
  const range = '206 bytes 5-25/26 fghijklmnopqrstuvwxyz';
  const without = ['upload chunked', 'expect', 'events', 'websocket'] as const;
  await takeSteps(t, demo, reportsWithout(without, { range }), steps);
});
