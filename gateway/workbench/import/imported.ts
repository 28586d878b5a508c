/**
 * The result of reading another product's configuration: rows of a policy file, and everything that a policy file
 * cannot express. Each product has a reader (envoy.ts, rate-limit-service.ts). policy-text.ts writes the file.
 */
export type Product = 'envoy' | 'ratelimit';

export type Who =
  | { readonly kind: 'address' }
  | { readonly kind: 'everyone' }
  | { readonly kind: 'header'; readonly header: string };

/** A place in the source file. */
interface Source {
  readonly line: number;
  /** The setting at that place, in the product's own terms. */
  readonly what: string;
}

export interface ImportedRow {
  /** Text from which the name of the policy is made. */
  readonly hint: string;
  /** HTTP method; null for every method. */
  readonly methods: readonly string[] | null;
  /** Path in the notation of a policy file; `*` for every path. */
  readonly path: string;
  readonly who: Who;
  readonly limit: number;
  readonly windowSeconds: number;
  /** Size of the token bucket; null for a fixed window. */
  readonly burst: number | null;
  readonly mode: 'enforce' | 'shadow';
  /** Rows of one group share a counter; null for a counter of its own. */
  readonly group: string | null;
  readonly source: Source;
  /** How the policy differs from the original. */
  readonly notes: readonly string[];
  /** Number of the limit in the source. Several rows may carry over one limit. */
  readonly number: number;
}

const DEFAULTS = {
  methods: null,
  path: '*',
  burst: null,
  mode: 'enforce',
  group: null,
} as const;

/** A row without the fields that keep their defaults. */
type NewRow = Omit<ImportedRow, keyof typeof DEFAULTS | 'number'> &
  Partial<Pick<ImportedRow, keyof typeof DEFAULTS>>;

export interface ImportedExclusion {
  readonly path: string;
  readonly source: Source;
  readonly number: number;
}

/** A setting that a policy file cannot express. */
export interface Unsupported extends Source {
  readonly reason: string;
}

export class Imported {
  readonly rows: ImportedRow[] = [];
  readonly exclude: ImportedExclusion[] = [];
  readonly unsupported: Unsupported[] = [];
  /** Number of limits in the source so far. */
  found = 0;

  /** Begins the next limit of the source. Everything that is added afterwards carries it over. */
  begin(): void {
    this.found++;
  }

  add(row: NewRow): void {
    this.rows.push({ ...DEFAULTS, ...row, number: this.found });
  }

  exempt(path: string, source: Source): void {
    this.exclude.push({ path, source, number: this.found });
  }

  refuse({ line }: { readonly line: number }, what: string, reason: string): void {
    this.unsupported.push({ line, what, reason });
  }
}

/** The file is not valid. The message has the line and the fix. */
export class ImportError extends Error {}

export const BY_ADDRESS: Who = { kind: 'address' };
const EVERYONE: Who = { kind: 'everyone' };
export const IPV6_NOTE = 'with IPv6, a /64 network is one client, not a single address';

export function byHeader(name: string): Who {
  return { kind: 'header', header: name.toLowerCase() };
}

/** @returns the only counted identity, or the reason why a policy cannot count them */
export function onlyOne([only, ...others]: readonly Who[]): Who | string {
  if (only === undefined) return EVERYONE;
  return others.length === 0
    ? only
    : 'it counts a client by several things at once, which is not carried over: write a list of identifiers';
}

const SECONDS_OF: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
};

type Limit = Pick<ImportedRow, 'limit' | 'windowSeconds' | 'notes'>;

/**
 * Reads a limit for a unit of time.
 *
 * @param missing the reason if there is no limit, or no such unit
 * @returns the limit, or the reason why a policy cannot have it
 */
export function limitPer(unit: string, limit: number | null, missing: string): Limit | string {
  const name = unit.toLowerCase();
  const windowSeconds = SECONDS_OF[name];
  if (limit === null || windowSeconds === undefined) return missing;
  if (!Number.isSafeInteger(limit) || limit < 1)
    return `a limit of ${limit} has no counterpart: it is at least 1`;
  const days = windowSeconds / 86_400;
  return { limit, windowSeconds, notes: days > 1 ? [`a ${name} is ${days} days here`] : [] };
}
