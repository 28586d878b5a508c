/** `npm run release`: its files, which are the same in two runs. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { makeRelease, RELEASED_NODE, releasedNode } from '#test/support/release.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const { version } = JSON.parse(readFileSync(join(projectRoot, 'package.json'), 'utf8'));

const first = await makeRelease(t);

t.test('two runs give the same bytes, whatever the umask and the time zone', async (t) => {
  const second = await makeRelease(t, { umask: '077', env: { TZ: 'Asia/Tokyo', LC_ALL: 'C' } });
  const sums = (folder: string): string => readFileSync(join(folder, 'SHA256SUMS'), 'utf8');
  t.equal(sums(second), sums(first));
  const names = readdirSync(first);
  const arch = process.arch === 'x64' ? 'amd64' : process.arch;
  t.strictSame(names.sort(), [
    `CHANGES-${version}.md`,
    'SHA256SUMS',
    `floodgate-${version}.cdx.json`,
    `floodgate-${version}.tgz`,
    `floodgate-api-${version}.cdx.json`,
    `floodgate-api_${version}_${arch}.deb`,
    `floodgate-limits-${version}.tgz`,
    `floodgate_${version}_${arch}.deb`,
  ]);
  await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: first });
  t.equal(sums(first).trim().split('\n').length, names.length - 1, 'every file has a digest');
  t.match(readFileSync(join(first, `CHANGES-${version}.md`), 'utf8'), /^### Added\n/);
});

t.test('the lists of contents name what is in the packages', async (t) => {
  const folder = first;
  for (const name of ['floodgate', 'floodgate-api']) {
    const bill = JSON.parse(readFileSync(join(folder, `${name}-${version}.cdx.json`), 'utf8'));
    t.match(bill, {
      bomFormat: 'CycloneDX',
      metadata: { component: { name, version } },
      serialNumber: undefined,
    });
    const listed: string[] = bill.components.map(
      ({ name, version }: Record<string, string>) => `${name}@${version}`,
    );
    t.ok(listed.includes(`node@${RELEASED_NODE}`), 'Node.js is part of the release');
    const [deb = ''] = readdirSync(folder).filter((file) => file.startsWith(`${name}_`));
    const { stdout } = await run('dpkg-deb', ['--contents', join(folder, deb)], { maxBuffer: 64 << 20 });
    const installed = [
      ...stdout.matchAll(
        / \.\/usr\/lib\/[^/]+\/(?:.*\/)?node_modules\/((?:@[^/]+\/)?[^/]+)\/package\.json$/gm,
      ),
    ];
    t.strictSame(
      [...new Set(listed.map((entry) => entry.slice(0, entry.lastIndexOf('@'))))]
        .filter((entry) => entry !== 'node')
        .sort(),
      [...new Set(installed.map(([, name = '']) => name))].sort(),
    );
    const isNative = / \S+\.node$/m.test(stdout);
    t.equal(isNative, name === 'floodgate-api', 'only the survey API has native code');
  }
});

t.test('a Node.js with known security holes is refused', async (t) => {
  const folder = temporaryFolder(t);
  const holed = join(folder, 'node');
  writeFileSync(holed, '#!/bin/sh\necho v26.12.1\n', { mode: 0o755 });
  const args = ['package/release/main.ts', '--out', join(folder, 'out'), '--node', holed];
  await t.rejects(
    run(process.execPath, args, { cwd: projectRoot }),
    /The release is not made: Node.js 26\.12\.1 has known security holes .*--node/,
  );
  t.notOk(existsSync(join(folder, 'out')), 'nothing is written');
});

t.test('a folder with files, and a Node.js that does not exist, are refused', async (t) => {
  const node = await releasedNode(t);
  const release = ['package/release/main.ts', '--node', node, '--out'];
  const inProject = { cwd: projectRoot };
  await t.rejects(run(process.execPath, [...release, projectRoot], inProject), /is not empty: remove it/);
  const other = [...release, temporaryFolder(t), '--node', '/no/such/node'];
  await t.rejects(run(process.execPath, other, inProject), /The release is not made: .*no\/such\/node/);
});
