/**
 * The packages that a program needs, in the versions of the lock file. They are copied from node_modules, because a
 * registry could answer differently tomorrow.
 */
import { cpSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

type Versions = Readonly<Record<string, string>>;
interface Locked {
  readonly version?: string;
  readonly dependencies?: Versions;
  readonly optionalDependencies?: Versions;
  readonly peerDependencies?: Versions;
  readonly peerDependenciesMeta?: Readonly<Record<string, { readonly optional?: boolean }>>;
}
type Lock = Readonly<Record<string, Locked>>;

/** Fields of package.json that are the same for all who install the package. */
export interface Manifest {
  readonly name: string;
  readonly version: string;
  readonly description: string;
  readonly license: string;
  readonly type?: string;
  readonly imports?: Versions;
  readonly dependencies: Versions;
}

/** Copies the packages into a folder with its own package.json and lock file. @returns their number */
export function install(project: string, manifest: Manifest, folder: string): number {
  const { overrides } = JSON.parse(readFileSync(join(project, 'package.json'), 'utf8'));
  // npm needs the overrides to accept the versions of the lock file.
  const written = { ...manifest, overrides };
  const { packages, ...lock } = JSON.parse(readFileSync(join(project, 'package-lock.json'), 'utf8'));
  const paths = [...neededBy(packages, Object.keys(manifest.dependencies))].sort();
  for (const path of paths) {
    const source = join(project, path);
    if (!existsSync(source)) throw new Error(`${path} is not installed: run "npm ci" first`);
    const own = join(source, 'node_modules');
    cpSync(source, join(folder, path), { recursive: true, filter: (file) => file !== own });
  }
  const entries = Object.fromEntries(paths.map((path) => [path, packages[path]]));
  writeJson(join(folder, 'package.json'), written);
  writeJson(join(folder, 'package-lock.json'), {
    ...lock,
    name: manifest.name,
    version: manifest.version,
    packages: { '': written, ...entries },
  });
  return paths.length;
}

/** Returns the places in node_modules of the packages and of all that they need. */
function neededBy(lock: Lock, names: readonly string[]): ReadonlySet<string> {
  const needed = new Set<string>();
  const add = (from: string, name: string): void => {
    const path = found(lock, from, name);
    // An optional package for another system is not there.
    if (path === null || needed.has(path)) return;
    needed.add(path);
    const { dependencies, optionalDependencies, peerDependencies, peerDependenciesMeta } = lock[path] ?? {};
    const peers = Object.keys(peerDependencies ?? {}).filter(
      (peer) => !peerDependenciesMeta?.[peer]?.optional,
    );
    for (const other of [...Object.keys({ ...dependencies, ...optionalDependencies }), ...peers])
      add(path, other);
  };
  for (const name of names) add('', name);
  return needed;
}

/** Finds a package as Node.js does: in the nearest node_modules. */
function found(lock: Lock, from: string, name: string): string | null {
  for (let at = from; ; at = at.slice(0, Math.max(0, at.lastIndexOf('node_modules/') - 1))) {
    const path = `${at === '' ? '' : `${at}/`}node_modules/${name}`;
    if (path in lock) return path;
    if (at === '') return null;
  }
}

function writeJson(file: string, value: unknown): void {
  writeFileSync(file, `${JSON.stringify(value, null, 2)}\n`);
}
