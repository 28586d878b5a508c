/**
 * Lets `npm pack` in the project pack only the gateway, like `npm pack ./package`. While it runs, package.json is that
 * of the package, because npm reads it after `prepack`.
 *
 *     node package/manifest.ts use | restore
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const inUse = join(root, 'package.json');
const kept = join(root, 'package/package.json.project');

/** Adapts the paths, which are relative to the folder of the package. */
function fromRoot(text: string): string {
  return text
    .replaceAll('"./dist/', '"./package/dist/')
    .replaceAll('"dist', '"package/dist')
    .replace('"prepack": "node build.ts"', '"postpack": "node package/manifest.ts restore"');
}

/** Also repairs an interrupted run. */
function restore(): void {
  if (existsSync(kept)) renameSync(kept, inUse);
}

restore();
if (process.argv[2] === 'use') {
  writeFileSync(kept, readFileSync(inUse));
  writeFileSync(inUse, fromRoot(readFileSync(join(root, 'package/package.json'), 'utf8')));
}
