/** The files of both Debian packages, without the packages of npm. They are installed apart. */
import { cpSync, existsSync, globSync, readFileSync, writeFileSync } from 'node:fs';
import { isBuiltin, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import type { DebianPackage } from './deb.ts';
import type { Manifest } from './dependencies.ts';
import { writeManual } from './manual.ts';

const ARCHITECTURES: Readonly<Record<string, string>> = { x64: 'amd64', arm64: 'arm64' };
export const DEBIAN_ARCHITECTURE = ARCHITECTURES[process.arch] ?? process.arch;

interface Sources {
  /** Copy of the project, in which the package for npm has been built. */
  readonly sources: string;
  /** Folder that stands for the root of the file system. */
  readonly tree: string;
  /** The Node.js to deliver. */
  readonly node: string;
  readonly gateway: Manifest;
  /** The manifest of the project. */
  readonly whole: Manifest;
  /** Version of both Debian packages. */
  readonly version: string;
  /** Day of the release, YYYY-MM-DD. */
  readonly date: string;
}

interface Tree {
  /** Folder that gets the packages of npm. */
  readonly home: string;
  readonly manifest: Manifest;
  readonly deb: Omit<DebianPackage, 'version' | 'architecture'>;
}

/** Returns a function that copies a file, or a folder, into the tree. */
function copier(from: string, tree: string) {
  return (source: string, target: string): void =>
    cpSync(join(from, source), join(tree, target), { recursive: true });
}

/** The gateway as JavaScript, as the package for npm has it, and Node.js. */
export function gatewayTree({ sources, tree, node, gateway, version, date }: Sources): Tree {
  const copy = copier(sources, tree);
  copy('package/dist', 'usr/lib/floodgate/dist');
  copy('package/debian/floodgate', 'usr/bin/floodgate');
  copy('package/debian/gateway.env', 'etc/floodgate/gateway.env');
  copy('package/systemd/floodgate.service', 'usr/lib/systemd/system/floodgate.service');
  copy('LICENSE', 'usr/share/doc/floodgate/copyright');
  copier('', tree)(node, 'usr/lib/floodgate/bin/node');
  copier('', tree)(licenceOf(node), 'usr/share/doc/floodgate/LICENSE.nodejs');
  const example = readFileSync(join(sources, 'examples/json-api.yaml'), 'utf8');
  // The first comment names the schema by a path that is valid only beside the examples.
  const policies = example.replace(/^# yaml-language-server:.*\n(?:#\n)?/, '');
  writeFileSync(join(tree, 'etc/floodgate/policies.yaml'), policies);
  // It runs beside the packages of the project; those of the tree are installed later.
  const program = join(sources, 'package/dist/gateway/cli/floodgate.mjs');
  writeManual(tree, { call: [process.execPath, program], version, date });
  const { dependencies, ...common } = gateway;
  return {
    home: join(tree, 'usr/lib/floodgate'),
    manifest: { ...pick(common), dependencies },
    deb: {
      name: 'floodgate',
      // The libraries that Node.js is linked with.
      depends: 'libc6 (>= 2.28), libstdc++6 (>= 7), libatomic1',
      recommends: 'redis-server',
      description: [
        'rate-limiting gateway in front of HTTP applications',
        'One process and one policy file limit the requests of each client. With',
        'Redis, the limits are exact over any number of gateways. The package has',
        'its own Node.js.',
      ],
      scripts: scriptsOf(sources, 'floodgate'),
    },
  };
}

/** The survey API in TypeScript. It runs with the Node.js of the gateway's package. */
export function apiTree({ sources, tree, whole, version }: Sources): Tree {
  const copy = copier(sources, tree);
  copy('api', 'usr/lib/floodgate-api/api');
  copy('shared', 'usr/lib/floodgate-api/shared');
  copy('package/debian/api.env', 'etc/floodgate/api.env');
  for (const unit of ['floodgate-api', 'floodgate-api@'])
    copy('package/systemd/floodgate-api.service', `usr/lib/systemd/system/${unit}.service`);
  copy('docs/api.md', 'usr/share/doc/floodgate-api/api.md');
  copy('LICENSE', 'usr/share/doc/floodgate-api/copyright');
  const imported = packagesOf(join(tree, 'usr/lib/floodgate-api'));
  const dependencies = Object.fromEntries(
    Object.entries(whole.dependencies).filter(([name]) => imported.has(name)),
  );
  return {
    home: join(tree, 'usr/lib/floodgate-api'),
    manifest: {
      ...pick(whole),
      name: 'floodgate-api',
      description: 'Survey API of Floodgate',
      type: 'module',
      imports: { '#api/*': './api/*', '#shared/*': './shared/*' },
      dependencies,
    },
    deb: {
      name: 'floodgate-api',
      depends: `floodgate (= ${version})`,
      description: [
        'survey API that Formbricks clients can use',
        'An application to put behind the gateway of the package floodgate. It keeps',
        'surveys and their responses in SQLite or PostgreSQL.',
      ],
      scripts: scriptsOf(sources, 'floodgate-api'),
    },
  };
}

function pick({ name, version, description, license }: Omit<Manifest, 'dependencies'>) {
  return { name, version, description, license };
}

/** Returns the scripts of the package manager for the units of a package. */
function scriptsOf(sources: string, name: string): Readonly<Record<string, string>> {
  const read = (script: string): [string, string] => [
    script,
    readFileSync(join(sources, 'package/debian', `${name}.${script}`), 'utf8'),
  ];
  return Object.fromEntries(['postinst', 'prerm', 'postrm'].map(read));
}

/** Returns the names of the packages that the code of a folder imports. */
function packagesOf(folder: string): ReadonlySet<string> {
  const names = globSync('**/*.ts', { cwd: folder }).flatMap((file) => {
    const text = stripTypeScriptTypes(readFileSync(join(folder, file), 'utf8'));
    return [...text.matchAll(/\b(?:from |import |(?:import|require|resolve)\()'([^'.#][^']*)'/g)].map(
      ([, name = '']) => name.split('/', name.startsWith('@') ? 2 : 1).join('/'),
    );
  });
  return new Set(names.filter((name) => !isBuiltin(name)));
}

/** Finds the licence of Node.js beside its program, where its archive and the packages of npm have it. */
function licenceOf(node: string): string {
  const file = join(dirname(node), '../LICENSE');
  if (!existsSync(file)) throw new Error(`the licence of Node.js is missing: put its LICENSE at ${file}`);
  return file;
}
