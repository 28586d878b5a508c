/** `npm run release`: its files, which are the same in two runs. */
import { execFile } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { gunzipSync } from 'node:zlib';
import t from 'tap';
import { COMMANDS } from '#gateway/cli/commands/all.ts';
import { builtVersion } from '#package/version.ts';
import { clone } from '#test/support/installation.ts';
import { projectRoot } from '#test/support/process.ts';
import { makeRelease, RELEASED_NODE, releasedNode } from '#test/support/release.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

const run = promisify(execFile);
const version = builtVersion(projectRoot);
const debian = version.replace('-', '~');
/** npm leaves out the commit behind a version. */
const [npmVersion = ''] = version.split('+');

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
    `floodgate-${npmVersion}.tgz`,
    `floodgate-api-${version}.cdx.json`,
    `floodgate-api_${debian}_${arch}.deb`,
    `floodgate_${debian}_${arch}.deb`,
  ]);
  await run('sha256sum', ['--check', '--strict', 'SHA256SUMS'], { cwd: first });
  t.equal(sums(first).trim().split('\n').length, names.length - 1, 'every file has a digest');
  t.match(readFileSync(join(first, `CHANGES-${version}.md`), 'utf8'), /^Floodgate is /);
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

t.test('the package for npm is the one that npm pack makes', async (t) => {
  const folder = temporaryFolder(t);
  const env = { ...process.env, NODE_NO_WARNINGS: '1' };
  await run('npm', ['pack', './package', '--pack-destination', folder], { cwd: projectRoot, env });
  const name = `floodgate-${npmVersion}.tgz`;
  t.ok(readFileSync(join(folder, name)).equals(readFileSync(join(first, name))));
  await t.rejects(run('npm', ['pack'], { cwd: projectRoot, env }), /npm pack \.\/package/);
});

t.test('the Debian package has a manual page, and names a person', async (t) => {
  const folder = temporaryFolder(t);
  const deb = join(first, `floodgate_${debian}_${process.arch === 'x64' ? 'amd64' : process.arch}.deb`);
  await run('dpkg-deb', ['--raw-extract', deb, folder]);
  const page = gunzipSync(readFileSync(join(folder, 'usr/share/man/man1/floodgate.1.gz'))).toString();
  t.match(page, `.TH FLOODGATE 1 `);
  for (const name of Object.keys(COMMANDS)) t.match(page, `\n.SS floodgate ${name}\n.nf\nfloodgate ${name}`);
  t.notMatch(page, /\n(?!\.(?:TH|SH|SS|TP|I|nf|fi)\b)\./, 'no line of the help is taken for a request');
  const { stdout: author } = await run('git', ['log', '-1', '--format=%an <%ae>'], { cwd: projectRoot });
  t.match(readFileSync(join(folder, 'DEBIAN/control'), 'utf8'), `\nMaintainer: ${author.trim()}\n`);
});

t.test('a version without -dev needs its section of the changelog, and its tag', async (t) => {
  const folder = clone(t);
  const args = ['-c', 'user.name=a', '-c', 'user.email=a@example.org'];
  const git = (...more: readonly string[]) => run('git', [...args, ...more], { cwd: folder });
  for (const file of ['package.json', 'package/package.json']) {
    const text = readFileSync(join(folder, file), 'utf8');
    writeFileSync(join(folder, file), text.replace(/"version": ".*"/, '"version": "99.0.0"'));
  }
  symlinkSync(join(projectRoot, 'node_modules'), join(folder, 'node_modules'));
  await git('init', '--quiet');
  await git('add', 'package.json');
  await git('commit', '--quiet', '-m', 'all');
  const release = ['package/release/main.ts', '--out', temporaryFolder(t), '--node', '/no/such/node'];
  await t.rejects(run(process.execPath, release, { cwd: folder }), /no section "## 99\.0\.0: …": write/);
  writeFileSync(join(folder, 'CHANGELOG.md'), '# Changelog\n\n## 99.0.0: a release\n\nAll.\n');
  await t.rejects(
    run(process.execPath, release, { cwd: folder }),
    /this commit is not v99\.0\.0: tag it first/,
  );
  await git('tag', 'v99.0.0');
  await t.rejects(run(process.execPath, release, { cwd: folder }), /no\/such\/node/);
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
  const full = ['package/release/main.ts', '--out', projectRoot, '--node', await releasedNode(t)];
  await t.rejects(run(process.execPath, full, { cwd: projectRoot }), /is not empty: remove it/);
});
