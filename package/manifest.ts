/**
 * `npm pack` in the project packs the gateway alone, as `npm pack ./package` does: while it runs, package.json is that of
 * the package. npm reads it after `prepack`.
 *
 *     node package/manifest.ts use | restore
 */
import { existsSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

const root = join(import.meta.dirname, '..');
const inUse = join(root, 'package.json');
const kept = join(root, 'package/package.json.project');

/** The paths in it are relative to its folder. */
function fromRoot(text: string): string {
  return text
    .replaceAll('"./dist/', '"./package/dist/')
    .replaceAll('"dist', '"package/dist')
    .replace('"prepack": "node build.ts"', '"postpack": "node package/manifest.ts restore"');
}

/** Also after a run that was cut off in between. */
function restore(): void {
  if (existsSync(kept)) renameSync(kept, inUse);
}

restore();
if (process.argv[2] === 'use') {
  writeFileSync(kept, readFileSync(inUse));
  writeFileSync(inUse, fromRoot(readFileSync(join(root, 'package/package.json'), 'utf8')));
}
