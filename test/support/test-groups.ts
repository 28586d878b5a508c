/**
 * Which test files share a process. To start one, load tap and then the program under test takes a second or more, as
 * long as many a file runs; the later files of a process find all of it loaded and compiled.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { projectRoot } from './process.ts';
import { reaches } from './test-imports.ts';

/** More save little, and what a process loses when it ends half-way grows. */
const WEIGHT_MAX = 36;
/** Of a file that starts processes of its own; any other weighs one. It takes that much longer, on average. */
const STARTING_WEIGHT = 4;
const STARTS = 'test/support/process.ts';
/** These look at the process itself, and would see what others leave in it: memory, timers, listeners. */
const ALONE = /memoryUsage|getActiveResourcesInfo|diagnostics_channel/;

export interface TestGroup {
  readonly files: readonly string[];
  /** How long it takes, about, in any unit: what takes longest should begin first. */
  readonly weight: number;
}

/**
 * @param alone those that take so long that others should run beside them
 * @returns those that are alone, then the others, the heaviest first
 */
export function groupsOf(files: readonly string[], alone: readonly string[]): TestGroup[] {
  const groups: { files: string[]; weight: number }[] = [];
  const open = new Map<string, { files: string[]; weight: number }>();
  for (const file of files) {
    const area = areaOf(file);
    const weight = reaches(file, STARTS) ? STARTING_WEIGHT : 1;
    const group = open.get(area);
    if (alone.includes(file)) groups.push({ files: [file], weight: Number.POSITIVE_INFINITY });
    else if (ALONE.test(readFileSync(join(projectRoot, file), 'utf8')))
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
  return groups.sort(byWeight);
}

/** Those of one weight keep their order. */
export function byWeight(a: TestGroup, b: TestGroup): number {
  return a.weight === b.weight ? 0 : b.weight - a.weight;
}

/** Its files load the same modules. */
function areaOf(file: string): string {
  const [, area = '', ...inside] = file.split('/');
  return inside.length === 0 ? '' : area;
}
