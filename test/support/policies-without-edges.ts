import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Owner } from './gateway.ts';
import { projectRoot } from './process.ts';
import { temporaryFolder } from './temporary-folder.ts';
import { LONG_WINDOW } from './window.ts';

/** @returns the path of a copy of the project's policy file whose windows do not end during a test */
export function policiesWithoutEdges(owner: Owner): string {
  const file = join(temporaryFolder(owner), 'policies.yaml');
  const shipped = readFileSync(join(projectRoot, 'config/policies.yaml'), 'utf8');
  writeFileSync(file, shipped.replaceAll(/window: \S+/g, `window: ${LONG_WINDOW}`));
  return file;
}
