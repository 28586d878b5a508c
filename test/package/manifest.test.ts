/** What the package asks for is what its code imports, in the versions that the project is tested with. */
import { globSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';

type Versions = Readonly<Record<string, string>>;
interface Manifest {
  readonly version: string;
  readonly dependencies: Versions;
  readonly devDependencies: Versions;
  readonly optionalDependencies: Versions;
}

function manifest(file: string): Manifest {
  return JSON.parse(readFileSync(join(projectRoot, file), 'utf8'));
}

const project = manifest('package.json');
const published = manifest('package/package.json');

t.test('it needs what the gateway imports, and nothing else', async (t) => {
  const imported = new Set<string>();
  for (const file of globSync(['gateway/**/*.ts', 'shared/**/*.ts'], { cwd: projectRoot })) {
    const text = readFileSync(join(projectRoot, file), 'utf8');
    for (const [, name = ''] of text.matchAll(/\b(?:from |import |import\()'([^.#'][^']*)'/g))
      if (!name.startsWith('node:') && !builtinModules.includes(name))
        imported.add(name.split('/', name.startsWith('@') ? 2 : 1).join('/'));
  }
  t.strictSame(Object.keys(published.dependencies).sort(), [...imported].sort());
});

t.test('in the versions of the project', async (t) => {
  t.equal(published.version, project.version);
  for (const [name, range] of Object.entries(published.dependencies))
    t.equal(range, project.dependencies[name], name);
  for (const [name, range] of Object.entries(published.optionalDependencies))
    t.equal(range, project.devDependencies.node, name);
});
