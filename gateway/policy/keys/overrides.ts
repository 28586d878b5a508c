/** Loads the overrides of policies, from the policy file or from a file in the same folder with one override a line. */

import type { XStatic } from 'typebox/schema';
import { ALGORITHMS } from '#gateway/algorithms/table.ts';
import { EVERYONE, type Identifier } from '#gateway/identity/identifier.ts';
import { ClientTable, type Overrides } from '#gateway/policy/clients.ts';
import type { Policy } from '#gateway/policy/policy.ts';
import { Mistake, type Path, type Report, readEach, refuseKeys } from '#gateway/policy/problems.ts';
import { versionOf } from '#gateway/policy/referenced-files.ts';
import { neverPasses } from './cost.ts';
import { checkValueLimit } from './distinct.ts';
import { type LinePlace, readLines } from './lines.ts';
import { KINDS, type Kind, nameClient } from './named-clients.ts';
import type { QUOTA_KEYS } from './quota-keys.ts';
import { LIMIT_MAX } from './schema-parts.ts';

interface Written {
  readonly overrides?: XStatic<(typeof QUOTA_KEYS)['overrides']['schema']>;
  readonly overridesFile?: string;
}

export class OverrideLoader {
  readonly #place: LinePlace;
  readonly #hasPlan: boolean;
  readonly #files = new Map<string, Overrides | null>();

  constructor(place: LinePlace, hasPlan: boolean) {
    this.#place = place;
    this.#hasPlan = hasPlan;
  }

  of(written: Written, identifier: Identifier | null, here: Path): Overrides | null {
    const { overrides, overridesFile } = written;
    const { report } = this.#place;
    if (identifier === EVERYONE) {
      const why = 'are for single clients, and everyone is counted together';
      refuseKeys(written, ['overrides', 'overridesFile'], here, report, why, 'remove them');
    }
    if (overrides === undefined)
      return overridesFile === undefined ? null : this.#file(overridesFile, [...here, 'overridesFile']);
    refuseKeys(written, ['overridesFile'], here, report, 'cannot stand beside overrides', 'keep one of them');
    const table = new OverrideTable(this.#hasPlan);
    const reportFor: Report = ([i = 0], ...mistake) => report([...here, 'overrides', i, 'for'], ...mistake);
    readEach(overrides, reportFor, ({ for: who, limit }) => {
      for (const kind of KINDS) if (who[kind] !== undefined) table.add(kind, who[kind], limit);
    });
    return table.withVersion(JSON.stringify(overrides));
  }

  /** @returns null if the file has mistakes, which are reported for the first policy that names it */
  #file(name: string, at: Path): Overrides | null {
    let overrides = this.#files.get(name);
    if (overrides === undefined) {
      const table = new OverrideTable(this.#hasPlan);
      const text = readLines({ name, at }, this.#place, (line) => table.addLine(line));
      overrides = text === null ? null : table.withVersion(text);
      this.#files.set(name, overrides);
    }
    return overrides;
  }
}

class OverrideTable {
  readonly #hasPlan: boolean;
  readonly #clients = new ClientTable<number>();
  #least = Number.POSITIVE_INFINITY;
  #most = 0;

  constructor(hasPlan: boolean) {
    this.#hasPlan = hasPlan;
  }

  /** @throws Mistake */
  addLine(line: string): void {
    const [written, value = '', limitText = '', ...more] = line.split(/\s+/);
    const kind = KINDS.find((kind) => kind === written);
    if (kind === undefined || limitText === '' || more.length > 0)
      throw new Mistake(
        `"${line.slice(0, 60)}" is not an override`,
        'write address CIDR LIMIT, digest DIGEST LIMIT, plan NAME LIMIT or userAgent NAME LIMIT',
      );
    const limit = /^[0-9]{1,10}$/.test(limitText) ? Number(limitText) : 0;
    if (limit < 1 || limit > LIMIT_MAX)
      throw new Mistake(
        `the limit is ${limitText.slice(0, 60)}`,
        `write a whole number from 1 to ${LIMIT_MAX}`,
      );
    this.add(kind, value, limit);
  }

  /** @throws Mistake */
  add(kind: Kind, value: string, limit: number): void {
    nameClient(this.#clients, kind, value, limit);
    if (kind === 'plan' && !this.#hasPlan)
      throw new Mistake(
        'nothing names plans',
        'write plan: { header: NAME }, plan: { claim: NAME } or plans: { file: NAME } at the top of the policy file',
      );
    this.#least = Math.min(this.#least, limit);
    this.#most = Math.max(this.#most, limit);
  }

  withVersion(text: string): Overrides {
    return { clients: this.#clients, least: this.#least, most: this.#most, version: versionOf(text) };
  }
}

/** Checks the overrides as their policy is checked. */
export function checkOverrides(
  { algorithm, windowMs, limit, burst, overrides, cost, distinct }: Policy,
  written: Written,
  window: string,
  report: Report,
): void {
  if (overrides === null || overrides.most === 0) return;
  const { least, most } = overrides;
  const pathOf = (other: number, isProgram = false): Path => {
    const at = written.overrides?.findIndex(
      (entry) => entry.limit === other && (!isProgram || entry.for.userAgent !== undefined),
    );
    return at === undefined ? ['overridesFile'] : ['overrides', at, 'limit'];
  };
  const looser = [...overrides.clients.programs.values()].find((other) => other >= limit);
  if (looser !== undefined)
    report(
      pathOf(looser, true),
      `anybody can write any User-Agent, and this one would have ${looser} instead of ${limit}`,
      'write a limit below that of the policy',
    );
  if (distinct !== null) checkValueLimit(most, pathOf(most), report);
  const countable = ALGORITHMS[algorithm].limitMax(windowMs);
  if (most > countable)
    report(
      pathOf(most),
      `the limit ${most} of an override is more than ${algorithm} can count in ${window}`,
      `write at most ${countable}, or a shorter window`,
    );
  // With a burst, an override does not change how many units can be used at once.
  const mistake = burst === null ? neverPasses(cost, least, `an override allows ${least}`) : null;
  if (mistake !== null) report(pathOf(least), mistake, 'write a larger limit, or a smaller cost');
}
