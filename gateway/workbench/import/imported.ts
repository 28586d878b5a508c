/**
 * What another product's configuration becomes: rows of a policy file, each with where it came from and in what it
 * differs, and everything that has no counterpart here, each with the reason. A reader of one product's files
 * (nginx.ts, envoy.ts, rate-limit-service.ts, traefik.ts, kong.ts) knows that product; policy-text.ts writes the file.
 */
export type Product = 'envoy' | 'ratelimit' | 'nginx' | 'traefik' | 'kong';

export type Who = { readonly kind: 'address' } | { readonly kind: 'header'; readonly header: string };

/** One place of the file that is read. */
export interface Source {
  /** From 1. */
  readonly line: number;
  /** What stands there, in that product's words. */
  readonly what: string;
}

export interface ImportedRow {
  /** Policies are named after it. */
  readonly hint: string;
  /** As a policy file writes them; null: every method. */
  readonly methods: readonly string[] | null;
  /** As a policy file writes it; `*`: every path. */
  readonly path: string;
  readonly who: Who;
  readonly limit: number;
  /** 0: the limit is of requests in flight. */
  readonly windowSeconds: number;
  /** Of a token bucket: how many may come at once; null: a fixed window. */
  readonly burst: number | null;
  readonly mode: 'enforce' | 'shadow';
  readonly onStoreFailure: 'local' | 'deny';
  readonly headers: boolean;
  /** Rows of one group share a counter; null: a counter of its own. */
  readonly group: string | null;
  /** Limits of clients of some plans, by the name of the plan; none where left out. */
  readonly plans?: ReadonlyMap<string, number>;
  readonly source: Source;
  /** In what it differs from what it was. */
  readonly notes: readonly string[];
}

export interface ImportedExclusion {
  readonly path: string;
  readonly source: Source;
}

/** What has no counterpart in a policy file. */
export interface Unsupported extends Source {
  readonly reason: string;
}

export interface PlanHeader {
  /** Lower-case. */
  readonly header: string;
  /** Says which program sets the header. */
  readonly note: string;
}

export interface Imported {
  /** Where rows have plans. */
  readonly planHeader?: PlanHeader;
  readonly rows: readonly ImportedRow[];
  readonly exclude: readonly ImportedExclusion[];
  readonly unsupported: readonly Unsupported[];
}

/** The file is not what it should be; the message has the line and says what to do. */
export class ImportError extends Error {}

/** Fields of a row that most products do not speak of. */
export const PLAIN_ROW = { burst: null, mode: 'enforce', onStoreFailure: 'local', headers: true } as const;

export const SECONDS_OF: Readonly<Record<string, number>> = {
  second: 1,
  minute: 60,
  hour: 3600,
  day: 86_400,
  month: 30 * 86_400,
  year: 365 * 86_400,
};
