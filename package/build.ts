/**
 * Writes the gateway and the command as JavaScript into package/dist, because Node does not strip types below
 * node_modules. `npm pack` runs it.
 */
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { stripTypeScriptTypes } from 'node:module';
import { basename, dirname, join } from 'node:path';
import { builtVersion } from './version.ts';

const root = join(import.meta.dirname, '..');
const dist = join(import.meta.dirname, 'dist');

/** Matches `from './a.ts'`, `import './a.ts'` and `import('./a.ts')` with single quotes. */
const SPECIFIER = /(\bfrom |\bimport |\bimport\()'([.#][^']*)\.ts'/g;

function write(name: string, text: string): void {
  const file = join(dist, name);
  mkdirSync(dirname(file), { recursive: true });
  writeFileSync(file, text);
}

function compile(name: string): string {
  return stripTypeScriptTypes(readFileSync(join(root, name), 'utf8')).replace(SPECIFIER, "$1'$2.js'");
}

function writeGateway(): void {
  for (const name of globSync(['gateway/**/*.ts', 'shared/**/*.ts'], { cwd: root }))
    write(name.replace(/\.ts$/, '.js'), compile(name));
  // Other files are copied: the admin page, the command, and data such as schemas.
  for (const name of globSync('{gateway,shared}/**/*.{cjs,css,html,js,json,mjs,svg}', { cwd: root }))
    if (basename(name) !== 'tsconfig.json') cpSync(join(root, name), join(dist, name));
  // The client of the survey API is no part of the gateway.
  cpSync(join(root, 'examples'), join(dist, 'examples'), {
    recursive: true,
    filter: (file) => !file.endsWith('.ts'),
  });
}

rmSync(dist, { recursive: true, force: true });
writeGateway();
cpSync(join(root, 'LICENSE'), join(import.meta.dirname, 'LICENSE'));

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
