/** The two packages depend on what their code imports, in the versions that the project is tested with. */
import { globSync, readFileSync } from 'node:fs';
import { isBuiltin, stripTypeScriptTypes } from 'node:module';
import { dirname, join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

type Versions = Readonly<Record<string, string>>;
interface Manifest {
  readonly version: string;
  readonly engines: { readonly node: string };
  readonly dependencies: Versions;
  readonly optionalDependencies: Versions;
}
interface Locked {
  readonly engines?: { readonly node?: string };
  readonly dependencies?: Versions;
}

function manifest(file: string): Manifest {
  return JSON.parse(readFileSync(join(projectRoot, file), 'utf8'));
}

const project = manifest('package.json');
const published = manifest('package/package.json');
const library = manifest('package/library/package.json');
const locked: Readonly<Record<string, Locked>> = JSON.parse(
  readFileSync(join(projectRoot, 'package-lock.json'), 'utf8'),
).packages;

/** Returns all imports that remain when Node has stripped the types. */
function importsOf(file: string): readonly string[] {
  const text = stripTypeScriptTypes(readFileSync(join(projectRoot, file), 'utf8'));
  return [...text.matchAll(/\b(?:from |import |import\()'([^']*)'/g)].map(([, name = '']) => name);
}

/** The packages that the files import, without Node's own. */
function packagesOf(files: Iterable<string>): readonly string[] {
  const imported = [...files].flatMap(importsOf).filter((name) => /^[^.#]/.test(name) && !isBuiltin(name));
  return [...new Set(imported.map((name) => name.split('/', name.startsWith('@') ? 2 : 1).join('/')))].sort();
}

/** Returns the file and all project files that it imports. */
function reachedFrom(file: string, reached = new Set<string>()): ReadonlySet<string> {
  if (reached.has(file)) return reached;
  reached.add(file);
  for (const name of importsOf(file)) {
    if (name.startsWith('#')) reachedFrom(name.slice(1), reached);
    if (name.startsWith('.')) reachedFrom(join(dirname(file), name), reached);
  }
  return reached;
}

/** Returns the names of all packages that an install of these brings along, by the lock file. */
function broughtBy(names: readonly string[], brought = new Set<string>()): ReadonlySet<string> {
  for (const name of names) {
    if (brought.has(name)) continue;
    brought.add(name);
    broughtBy(Object.keys(locked[`node_modules/${name}`]?.dependencies ?? {}), brought);
  }
  return brought;
}

t.test('depends on exactly the packages that the gateway imports', async (t) => {
  const files = globSync(['gateway/**/*.ts', 'shared/**/*.ts'], {
    cwd: projectRoot,
    exclude: ['gateway/library/**'],
  });
  t.strictSame(Object.keys(published.dependencies).sort(), packagesOf(files));
});

t.test('the library depends only on the packages of its own files, and stays small', async (t) => {
  const needed = packagesOf(reachedFrom('gateway/library/index.ts'));
  t.strictSame(Object.keys(library.dependencies).sort(), needed);
  const brought = [...broughtBy(needed)];
  t.ok(brought.length <= 12, brought.join(' '));
  for (const name of brought) {
    const engine = locked[`node_modules/${name}`]?.engines?.node ?? '*';
    t.ok(/^(?:\*|>= ?(?:\d|1\d|20)(?:\.|$))/.test(engine), `${name} runs on Node ${engine}`);
  }
  t.match(library.engines.node, />=20/);
});

t.test('the versions are those of the project', async (t) => {
  for (const { version, dependencies } of [published, library]) {
    t.equal(version, project.version);
    for (const [name, range] of Object.entries(dependencies))
      t.equal(range, project.dependencies[name], name);
  }
  t.strictSame(Object.keys(published.optionalDependencies), Object.keys(project.optionalDependencies));
});
