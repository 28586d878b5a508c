/** Builds a Debian package from a folder that has its files. */
import { execFileSync } from 'node:child_process';
import { chmodSync, lstatSync, mkdirSync, readdirSync, statSync, utimesSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';

export interface DebianPackage {
  readonly name: string;
  readonly version: string;
  readonly architecture: string;
  /** Name and mail address. */
  readonly maintainer: string;
  readonly depends: string;
  readonly recommends?: string;
  /** The first line is the summary. */
  readonly description: readonly string[];
  /** By name, such as postinst. */
  readonly scripts: Readonly<Record<string, string>>;
}

/** @param seconds time of the release, since the epoch: the time of each file in the package */
export function buildDeb(tree: string, its: DebianPackage, target: string, seconds: number): void {
  const all = entriesOf(tree);
  const files = all.filter((path) => lstatSync(path).isFile());
  const conffiles = files
    .map((file) => `/${relative(tree, file)}`)
    .filter((file) => file.startsWith('/etc/'));
  const kib = files.reduce((sum, file) => sum + Math.ceil(lstatSync(file).size / 1024), 0);
  const control = join(tree, 'DEBIAN');
  mkdirSync(control);
  writeFileSync(join(control, 'conffiles'), conffiles.map((file) => `${file}\n`).join(''));
  for (const [name, text] of Object.entries(its.scripts)) writeFileSync(join(control, name), text);
  const [summary, ...more] = its.description;
  const fields = [
    ['Package', its.name],
    ['Version', its.version],
    ['Architecture', its.architecture],
    ['Maintainer', its.maintainer],
    ['Installed-Size', kib],
    ['Depends', its.depends],
    ...(its.recommends === undefined ? [] : [['Recommends', its.recommends]]),
    ['Section', 'net'],
    ['Priority', 'optional'],
    ['Description', [summary, ...more.map((line) => ` ${line}`)].join('\n')],
  ];
  writeFileSync(join(control, 'control'), fields.map(([name, value]) => `${name}: ${value}\n`).join(''));
  // The modes and times of a checkout depend on its machine.
  for (const path of [...entriesOf(tree), tree]) {
    const { mode } = statSync(path);
    const isScript = path.startsWith(control) && relative(control, path) in its.scripts;
    const isRun = statSync(path).isDirectory() || isScript || (mode & 0o100) !== 0;
    chmodSync(path, isRun ? 0o755 : 0o644);
    utimesSync(path, seconds, seconds);
  }
  // The strongest compression saves another 15 percent, and takes five times as long.
  const args = ['--root-owner-group', '-Zxz', '-z1', '--threads-max=1', '--build', tree, target];
  execFileSync('dpkg-deb', args, {
    env: { ...process.env, SOURCE_DATE_EPOCH: String(seconds) },
    stdio: ['ignore', 'ignore', 'inherit'],
  });
}

/** Returns all files and folders below the folder, sorted. */
function entriesOf(folder: string): readonly string[] {
  const names = readdirSync(folder, { recursive: true, encoding: 'utf8' });
  return names.sort().map((name) => join(folder, name));
}
