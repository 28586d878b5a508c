/** What the package asks for is what its code imports, in the versions that the project is tested with. */
import { execFileSync } from 'node:child_process';
import { copyFileSync, globSync, mkdirSync, readFileSync } from 'node:fs';
import { builtinModules } from 'node:module';
import { join } from 'node:path';
import t from 'tap';
import { projectRoot } from '#test/support/process.ts';
import { temporaryFolder } from '#test/support/temporary-folder.ts';

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

t.test('npm pack in the project packs the same, and gives the project its own manifest back', async (t) => {
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'package'));
  for (const name of ['package.json', 'package/package.json', 'package/manifest.ts'])
    copyFileSync(join(projectRoot, name), join(folder, name));
  const run = (what: string) =>
    execFileSync(process.execPath, [join(folder, 'package/manifest.ts'), what], { stdio: 'pipe' });
  const text = () => readFileSync(join(folder, 'package.json'), 'utf8');
  const own = text();
  run('use');
  const packed = JSON.parse(text());
  t.strictSame(packed.dependencies, published.dependencies);
  t.strictSame(packed.files, ['package/dist']);
  t.match(packed.bin.floodgate, /^package\/dist\//);
  t.match(packed.exports['.'].default, /^\.\/package\/dist\//);
  t.notOk(packed.scripts.prepack, 'it is not built twice');
  run('use');
  t.strictSame(JSON.parse(text()), packed, 'after a run that was cut off');
  run('restore');
  t.equal(text(), own);
  run('restore');
  t.equal(text(), own);
});
