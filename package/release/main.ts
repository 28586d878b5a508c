/**
 * `npm run release`: makes everything that a release consists of, in the folder release/. Two runs with the same commit,
 * Node.js and npm give the same bytes. It publishes and signs nothing: docs/releasing.md says how to.
 *
 *     npm run release -- [--out FOLDER] [--node FILE]
 */
import { execFileSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import {
  cpSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { nodeHole } from '../../gateway/operate/doctor/node-holes.ts';
import { builtVersion, git } from '../version.ts';
import { billOf } from './bill.ts';
import { buildDeb } from './deb.ts';
import { install, type Manifest } from './dependencies.ts';
import { apiTree, DEBIAN_ARCHITECTURE, gatewayTree } from './trees.ts';

const project = join(import.meta.dirname, '../..');
const { values: options } = parseArgs({
  options: {
    out: { type: 'string', default: 'release' },
    node: { type: 'string' },
    help: { type: 'boolean', short: 'h', default: false },
  },
});
if (options.help) {
  process.stdout.write(
    'npm run release -- [--out FOLDER] [--node FILE]\n\n' +
      'Makes everything that a release consists of: by default in release/, with the Node.js of node_modules.\n',
  );
  process.exit();
}
const out = resolve(options.out);

function read(name: string): string {
  return readFileSync(join(project, name), 'utf8');
}

/** @returns the section of the changelog about this version, or about the one that is in development */
function changesOf(version: string): string {
  const [number = ''] = version.split('-');
  const heading = `${number}: `;
  const section = read('CHANGELOG.md')
    .split(/^## /m)
    .find((text) => text.startsWith(heading));
  if (section === undefined)
    throw new Error(`CHANGELOG.md has no section "## ${number}: …": write what is new in it`);
  return section.slice(section.indexOf('\n')).trimStart();
}

/** @throws Error if a version that is not in development is made from another commit than its tag */
function checkTag(version: string): void {
  if (version.includes('-')) return;
  if (!git(project, 'tag', '--points-at', 'HEAD').split('\n').includes(`v${version}`))
    throw new Error(`this commit is not v${version}: tag it first, as docs/releasing.md shows`);
}

/** The person who answers for the package: as Debian's tools take it, or the author of the commit. */
function maintainer(): string {
  const { DEBFULLNAME, DEBEMAIL } = process.env;
  return DEBFULLNAME && DEBEMAIL
    ? `${DEBFULLNAME} <${DEBEMAIL}>`
    : git(project, 'log', '-1', '--format=%an <%ae>');
}

/** Everything that becomes part of the packages, or makes them. */
const SOURCES = [
  'api',
  'docs/api.md',
  'examples',
  'gateway',
  'package',
  'shared',
  'LICENSE',
  'package.json',
  'tsconfig.json',
];

/** Copies the sources, because packing writes files beside them. So two runs do not disturb each other. */
function copySources(folder: string): void {
  for (const name of SOURCES) cpSync(join(project, name), join(folder, name), { recursive: true });
  symlinkSync(join(project, 'node_modules'), join(folder, 'node_modules'));
}

/** Packs the package for npm, without the output of its scripts. */
function pack(sources: string, folder: string, version: string): void {
  const args = ['pack', '--loglevel=error', folder, '--pack-destination', out];
  const env = { ...process.env, NODE_NO_WARNINGS: '1', FLOODGATE_VERSION: version };
  execFileSync('npm', args, { cwd: sources, env, stdio: ['ignore', 'ignore', 'inherit'] });
}

function run(work: string): void {
  const version = builtVersion(project);
  const gateway: Manifest = { ...JSON.parse(read('package/package.json')), version };
  const whole: Manifest = { ...JSON.parse(read('package.json')), version };
  const text = changesOf(version);
  checkTag(version);
  const date = git(project, 'log', '-1', '--format=%cs');
  const seconds = Date.parse(date) / 1000;
  // For Debian, a version with ~ is older than the one without it.
  const debian = version.replace('-', '~');
  const node =
    options.node === undefined
      ? realpathSync(join(project, 'node_modules/.bin/node'))
      : resolve(options.node);
  const nodeVersion = execFileSync(node, ['--version'], { encoding: 'utf8' }).trim().slice(1);
  const hole = nodeHole(nodeVersion);
  if (hole !== null)
    throw new Error(`${hole.message}: ${hole.fix}. Name its program with --node, as docs/releasing.md shows`);
  mkdirSync(out, { recursive: true });
  if (readdirSync(out).length > 0)
    throw new Error(`${out} is not empty: remove it, or name another folder with --out`);
  writeFileSync(join(out, `CHANGES-${version}.md`), text);
  const sources = join(work, 'sources');
  copySources(sources);
  // The Debian package contains what this builds.
  pack(sources, './package', version);
  for (const make of [gatewayTree, apiTree]) {
    const tree = join(work, make.name);
    const { home, manifest, deb } = make({ sources, tree, node, gateway, whole, version: debian, date });
    const count = install(project, manifest, home);
    writeFileSync(join(out, `${deb.name}-${version}.cdx.json`), billOf(home, date, nodeVersion));
    const file = `${deb.name}_${debian}_${DEBIAN_ARCHITECTURE}.deb`;
    const identity = { version: debian, architecture: DEBIAN_ARCHITECTURE, maintainer: maintainer() };
    buildDeb(tree, { ...deb, ...identity }, join(out, file), seconds);
    console.log(`${file}: ${count} packages of npm, Node.js ${nodeVersion}`);
  }
  const sums = readdirSync(out)
    .sort()
    .map((name) => {
      const digest = createHash('sha256')
        .update(readFileSync(join(out, name)))
        .digest('hex');
      return `${digest}  ${name}\n`;
    });
  writeFileSync(join(out, 'SHA256SUMS'), sums.join(''));
  process.stdout.write(sums.join(''));
}

// npm gives the files in its package modes that depend on it.
process.umask(0o022);
const work = mkdtempSync(join(tmpdir(), 'floodgate-release-'));
try {
  run(work);
} catch (error) {
  console.error(`The release is not made: ${(error as Error).message}`);
  process.exitCode = 1;
} finally {
  rmSync(work, { recursive: true, force: true });
}
