/** What test files are made of, by their imports below test/. */
import { existsSync, readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { projectRoot } from './process.ts';

const IMPORT = /^(?:import|export)\s[^'"]*?from\s+'([^']+)'|^import\s+'([^']+)'/gm;

/** By target, then by file. */
const known = new Map<string, Map<string, boolean>>();

/** Whether the file is the target, or imports what reaches it. Both are named from the root of the project. */
export function reaches(file: string, target: string): boolean {
  if (file === target) return true;
  const answers = known.get(target) ?? new Map<string, boolean>();
  known.set(target, answers);
  const found = answers.get(file);
  if (found !== undefined) return found;
  // Until we know better; also ends a walk in a circle.
  answers.set(file, false);
  const answer = importsOf(file).some((one) => reaches(one, target));
  answers.set(file, answer);
  return answer;
}

function importsOf(file: string): readonly string[] {
  const path = join(projectRoot, file);
  if (!existsSync(path)) return [];
  return [...readFileSync(path, 'utf8').matchAll(IMPORT)].flatMap(([, from, bare]) => {
    const specifier = from ?? bare ?? '';
    if (specifier.startsWith('#test/')) return [specifier.slice(1)];
    if (!specifier.startsWith('.')) return [];
    const target = join(dirname(file), specifier);
    return target.startsWith('test/') ? [target] : [];
  });
}
