/** The package depends on what its code imports, in the versions that the project is tested with. */
import { globSync, readFileSync } from 'node:fs';
import { isBuiltin, stripTypeScriptTypes } from 'node:module';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

type Versions = Readonly<Record<string, string>>;
interface Manifest {
  readonly version: string;
  readonly dependencies: Versions;
  readonly optionalDependencies: Versions;
}

function manifest(file: string): Manifest {
  return JSON.parse(readFileSync(join(projectRoot, file), 'utf8'));
}

const project = manifest('package.json');
const published = manifest('package/package.json');

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

t.test('depends on exactly the packages that the gateway imports', async (t) => {
  const files = globSync(['gateway/**/*.ts', 'shared/**/*.ts'], { cwd: projectRoot });
  t.strictSame(Object.keys(published.dependencies).sort(), packagesOf(files));
});

t.test('the versions are those of the project', async (t) => {
  t.equal(published.version, project.version);
  for (const [name, range] of Object.entries(published.dependencies))
    t.equal(range, project.dependencies[name], name);
  t.strictSame(Object.keys(published.optionalDependencies), Object.keys(project.optionalDependencies));
});
