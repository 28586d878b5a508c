/**
 * Which test files share a process. To start one, load tap and then the program under test takes a second or more, as
 * long as many a file runs; the later files of a process find all of it loaded and compiled.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './process.ts';

/** More save little, and what a process loses when it ends half-way grows. */
const FILES_MAX = 12;
/** These look at the process itself, and would see what others leave in it: memory, timers, listeners. */
const ALONE = /memoryUsage|getActiveResourcesInfo|diagnostics_channel/;

/**
 * @param files in the order in which they should begin
 * @param alone those that take so long that others should run beside them
 */
export function groupsOf(files: readonly string[], alone: ReadonlySet<string>): string[][] {
  const groups: string[][] = [];
  const open = new Map<string, string[]>();
  for (const file of files) {
    const group = open.get(areaOf(file));
    if (alone.has(file) || ALONE.test(readFileSync(join(projectRoot, file), 'utf8'))) groups.push([file]);
    else if (group !== undefined && group.length < FILES_MAX) group.push(file);
    else {
      const begun = [file];
      open.set(areaOf(file), begun);
      groups.push(begun);
    }
  }
  return groups;
}

/** Its files load the same modules. */
function areaOf(file: string): string {
  const [, area = '', ...inside] = file.split('/');
  return inside.length === 0 ? '' : area;
}
