/**
 * Writes the files of a package as JavaScript, because Node does not strip types below node_modules. `npm pack` runs
 * it.
 *
 *     node package/build.ts            gateway and command, into package/dist
 *     node package/build.ts library    files that the library imports, and their types, into package/library/dist
 */
import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { builtVersion } from './version.ts';

const LIBRARY = 'gateway/library/index.ts';

const root = join(import.meta.dirname, '..');
const isLibrary = process.argv[2] === 'library';
const home = isLibrary ? join(import.meta.dirname, 'library') : import.meta.dirname;
const dist = join(home, 'dist');

/** Matches `from './a.ts'`, `import './a.ts'` and `import('./a.ts')` with single quotes. */
const SPECIFIER = /(\bfrom |\bimport |\bimport\()'([.#][^']*)\.ts'/g;

function write(name: string, text: string): void {
  const file = join(dist, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function compile(name: string): { readonly text: string; readonly imports: readonly string[] } {
  const text = stripTypeScriptTypes(readFileSync(join(root, name), 'utf8'));
  return {
    text: text.replace(SPECIFIER, "$1'$2.js'"),
    imports: [...text.matchAll(SPECIFIER)].map(([, , path = '']) =>
      path.startsWith('#') ? `${path.slice(1)}.ts` : `${join(dirname(name), path)}.ts`,
    ),
  };
}

/** Writes the file and all that it imports, directly or indirectly. */
function writeReached(name: string, written = new Set<string>()): void {
  if (written.has(name)) return;
  written.add(name);
  const { text, imports } = compile(name);
  write(name.replace(/\.ts$/, '.js'), text);
  for (const file of imports) writeReached(file, written);
}

/** Writes the declarations of the library and of the types that it uses. */
function writeTypes(): void {
  const tsc = join(root, 'node_modules/.bin/tsc');
  execFileSync(tsc, ['-p', join(import.meta.dirname, 'tsconfig.json')], { cwd: root, stdio: 'inherit' });
  for (const name of globSync('**/*.d.ts', { cwd: dist })) {
    const file = join(dist, name);
    writeFileSync(file, readFileSync(file, 'utf8').replace(SPECIFIER, "$1'$2.js'"));
  }
}

function writeGateway(): void {
  const sources = globSync(['gateway/**/*.ts', 'shared/**/*.ts'], {
    cwd: root,
    exclude: ['gateway/library/**'],
  });
  for (const name of sources) write(name.replace(/\.ts$/, '.js'), compile(name).text);
  // Other files are copied: the admin page, the command, and data such as schemas.
  for (const name of globSync('{gateway,shared}/**/*.{cjs,css,html,js,json,mjs,proto,svg}', { cwd: root }))
    if (basename(name) !== 'tsconfig.json') cpSync(join(root, name), join(dist, name));
  cpSync(join(root, 'examples'), join(dist, 'examples'), { recursive: true });
}

rmSync(dist, { recursive: true, force: true });
if (isLibrary) {
  writeReached(LIBRARY);
  writeTypes();
} else writeGateway();
cpSync(join(root, 'LICENSE'), join(home, 'LICENSE'));

// A release builds from a copy of the sources, which is no clone.
const version = process.env.FLOODGATE_VERSION ?? builtVersion(root);
write(
  'package.json',
  JSON.stringify(
    { type: 'module', version, imports: { '#gateway/*': './gateway/*', '#shared/*': './shared/*' } },
    null,
    2,
  ),
);
