/**
 * Writes what the package has in it: the gateway and what it shares with the API, without types, because Node strips none
 * below node_modules. `npm pack`, here or in the project, runs this.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';

const root = join(import.meta.dirname, '..');
const dist = join(import.meta.dirname, 'dist');

/** In `from './a.ts'`, `import './a.ts'` and `import('./a.ts')`; ours are quoted so throughout. */
const SPECIFIER = /(\bfrom |\bimport |\bimport\()'([.#][^']*)\.ts'/g;

function write(name: string, text: string): void {
  const file = join(dist, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

/** Declarations of the library, and of what it names. */
function writeTypes(): void {
  const tsc = join(root, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', join(import.meta.dirname, 'tsconfig.json')], { cwd: root, stdio: 'inherit' });
  for (const name of globSync('**/*.d.ts', { cwd: dist })) {
    const file = join(dist, name);
    writeFileSync(file, readFileSync(file, 'utf8').replace(SPECIFIER, "$1'$2.js'"));
  }
}

rmSync(dist, { recursive: true, force: true });
for (const name of globSync(['gateway/**/*.ts', 'shared/**/*.ts'], { cwd: root })) {
  const text = stripTypeScriptTypes(readFileSync(join(root, name), 'utf8'));
  write(name.replace(/\.ts$/, '.js'), text.replace(SPECIFIER, "$1'$2.js'"));
}
writeTypes();
// The page, what the start is in, and what other programs read, as they are.
for (const name of globSync('{gateway,shared}/**/*.{cjs,css,html,js,json,mjs,proto,svg}', { cwd: root }))
  if (basename(name) !== 'tsconfig.json') cpSync(join(root, name), join(dist, name));
cpSync(join(root, 'examples'), join(dist, 'examples'), { recursive: true });
cpSync(join(root, 'LICENSE'), join(import.meta.dirname, 'LICENSE'));

const { version } = JSON.parse(readFileSync(join(import.meta.dirname, 'package.json'), 'utf8'));
write(
  'package.json',
  JSON.stringify(
    { type: 'module', version, imports: { '#gateway/*': './gateway/*', '#shared/*': './shared/*' } },
    null,
    2,
  ),
);
