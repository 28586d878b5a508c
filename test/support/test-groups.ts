/**
 * Which test files share a process. To start one, load tap and then the program under test takes a second or more, as
 * long as many a file runs; the later files of a process find all of it loaded and compiled.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './process.ts';
import { SYSTEM } from './system-folders.ts';
import { reaches } from './test-imports.ts';

/** More save little, and what a process loses when it ends half-way grows. */
const WEIGHT_MAX = 36;
/** Of a file that starts processes of its own; any other weighs one. It takes that much longer, on average. */
const STARTING_WEIGHT = 4;
const STARTS = 'test/support/process.ts';
/** These look at the process itself, and would see what others leave in it: memory, timers, listeners. */
const ALONE = /memoryUsage|getActiveResourcesInfo|diagnostics_channel/;

/**
 * @param longest those that take so long that others should run beside them
 * @returns the longest, then the others, the heaviest first
 */
export function groupsOf(
  files: readonly string[],
  longest: readonly string[],
): readonly (readonly string[])[] {
  const groups: { files: string[]; weight: number }[] = [];
  const open = new Map<string, { files: string[]; weight: number }>();
  for (const file of files) {
    const area = areaOf(file);
    const weight = longest.includes(file)
      ? Number.POSITIVE_INFINITY
      : reaches(file, STARTS)
        ? STARTING_WEIGHT
        : 1;
    const group = open.get(area);
    if (file.startsWith(SYSTEM) || weight > WEIGHT_MAX || looksAtProcess(file))
      groups.push({ files: [file], weight });
    else if (group !== undefined && group.weight + weight <= WEIGHT_MAX) {
      group.files.push(file);
      group.weight += weight;
    } else {
      const begun = { files: [file], weight };
      open.set(area, begun);
      groups.push(begun);
    }
  }
  return groups.sort((a, b) => (a.weight === b.weight ? 0 : b.weight - a.weight)).map(({ files }) => files);
}

function looksAtProcess(file: string): boolean {
  return ALONE.test(readFileSync(join(projectRoot, file), 'utf8'));
}

/** Its files load the same modules. */
function areaOf(file: string): string {
  const [, area = '', ...inside] = file.split('/');
  return inside.length === 0 ? '' : area;
}
