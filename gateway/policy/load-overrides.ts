/** Loads the overrides of policies, from the policy file or from a file in the same folder with one override a line. */
import { parseNetwork } from '#shared/client-address.ts';
import { addLines } from './load-lines.ts';
import { NetworkTable } from './network-table.ts';
import { type Overrides, PLAN } from './overrides.ts';
import { Mistake, type Path, type Report, reportMistake } from './problems.ts';
import { type ReferencedFiles, versionOf } from './referenced-files.ts';
import type { PolicyFile } from './schema.ts';
import { LIMIT_MAX } from './schema-parts.ts';
import { PROGRAM_NAME } from './user-agent.ts';

type Row = Pick<PolicyFile['policies'][number], 'overrides' | 'overridesFile'>;

const LINE = /^\s*(address|digest|plan|userAgent)\s+(\S+)\s+(\S+)\s*$/;
export const DIGEST = /^[A-Za-z0-9_-]{22}$/;
const HOW = 'write address CIDR LIMIT, digest DIGEST LIMIT, plan NAME LIMIT or userAgent NAME LIMIT';

export class OverrideLoader {
  readonly #referenced: ReferencedFiles;
  readonly #hasPlan: boolean;
  readonly #report: Report;
  readonly #files = new Map<string, Overrides | null>();

  constructor(referenced: ReferencedFiles, hasPlan: boolean, report: Report) {
    this.#referenced = referenced;
    this.#hasPlan = hasPlan;
    this.#report = report;
  }

  of({ overrides, overridesFile }: Row, here: Path): Overrides | null {
    if (overrides !== undefined && overridesFile !== undefined)
      this.#report(
        [...here, 'overridesFile'],
        'overrides are given in two places',
        'keep overrides or overridesFile',
        'key',
      );
    if (overrides !== undefined) return this.#inline(overrides, [...here, 'overrides']);
    return overridesFile === undefined ? null : this.#file(overridesFile, [...here, 'overridesFile']);
  }

  #inline(entries: NonNullable<Row['overrides']>, here: Path): Overrides {
    const table = new OverrideTable(this.#hasPlan);
    for (const [i, { for: who, limit }] of entries.entries()) {
      const [kind = '', value = ''] = Object.entries(who)[0] ?? [];
      try {
        table.add(kind, value, limit);
      } catch (error) {
        reportMistake(this.#report, [...here, i, 'for'], error);
      }
    }
    return table.finished(JSON.stringify(entries));
  }

  /** @returns null if the file has mistakes, which are reported for the first policy that names it */
  #file(name: string, here: Path): Overrides | null {
    const known = this.#files.get(name);
    if (known !== undefined) return known;
    this.#files.set(name, null);
    const table = new OverrideTable(this.#hasPlan);
    const text = addLines(name, here, this.#referenced, this.#report, (line) => addLine(table, line));
    if (text === null) return null;
    const overrides = table.finished(text);
    this.#files.set(name, overrides);
    return overrides;
  }
}

function addLine(table: OverrideTable, line: string): void {
  const [, kind, value = '', limitText = ''] = LINE.exec(line) ?? [];
  if (kind === undefined) throw new Mistake(`"${line.trim().slice(0, 60)}" is not an override`, HOW);
  const limit = /^[0-9]{1,10}$/.test(limitText) ? Number(limitText) : 0;
  if (limit < 1 || limit > LIMIT_MAX)
    throw new Mistake(
      `the limit is ${limitText.slice(0, 60)}`,
      `write a whole number from 1 to ${LIMIT_MAX}`,
    );
  table.add(kind, value, limit);
}

class OverrideTable {
  readonly #hasPlan: boolean;
  readonly #digests = new Map<string, number>();
  readonly #networks = new NetworkTable<number>();
  readonly #plans = new Map<string, number>();
  readonly #programs = new Map<string, number>();
  #size = 0;
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor(hasPlan: boolean) {
    this.#hasPlan = hasPlan;
  }

  add(kind: string, value: string, limit: number): void {
    if (!this.#isNew(kind, value, limit))
      throw new Mistake(`${kind} ${value} appears twice`, 'keep one of them');
    this.#size++;
    this.#least = Math.min(this.#least, limit);
    this.#most = Math.max(this.#most, limit);
  }

  finished(text: string): Overrides {
    return {
      digests: this.#digests,
      networks: this.#networks,
      plans: this.#plans,
      programs: this.#programs,
      size: this.#size,
      least: this.#least,
      most: this.#most,
      version: versionOf(text),
    };
  }

  #isNew(kind: string, value: string, limit: number): boolean {
    switch (kind) {
      case 'address':
        return this.#networks.add(networkOf(value), limit);
      case 'digest':
        if (!DIGEST.test(value))
          throw new Mistake(
            `"${value}" is not a digest`,
            'write the 22 characters that floodgate explain shows as identity',
          );
        return isAdded(this.#digests, value, limit);
      case 'userAgent':
        return isAdded(this.#programs, programName(value), limit);
      default:
        if (!PLAN.test(value))
          throw new Mistake(
            `"${value}" is not a plan name`,
            'write letters, digits, dots, dashes and underscores, at most 64',
          );
        if (!this.#hasPlan)
          throw new Mistake(
            'nothing names plans',
            'write plan: { header: NAME } or plans: { file: NAME } at the top of the policy file',
          );
        return isAdded(this.#plans, value, limit);
    }
  }
}

function isAdded(map: Map<string, number>, key: string, limit: number): boolean {
  if (map.has(key)) return false;
  map.set(key, limit);
  return true;
}

/** @returns the name in lower case */
export function programName(text: string): string {
  if (!PROGRAM_NAME.test(text))
    throw new Mistake(
      `"${text.slice(0, 60)}" is not the name of a program`,
      'write one word of its User-Agent, such as GPTBot',
    );
  return text.toLowerCase();
}

export function networkOf(text: string): ReturnType<typeof parseNetwork> {
  try {
    return parseNetwork(text);
  } catch (error) {
    throw new Mistake(
      (error as Error).message,
      'write an address or a network such as 10.0.0.0/8 or 2001:db8::/32',
    );
  }
}
