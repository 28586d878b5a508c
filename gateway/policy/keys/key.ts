/**
 * A row of the tables of keys: everything that is known about one key of the policy file. policy-keys.ts and
 * file-keys.ts list the rows. The schema, the loader, the warnings, `explain` and the tables of
 * docs/policies-in-detail.md are made from these two lists.
 */
import type { XStatic } from 'typebox/schema';
import type { Identifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { LoadedPolicy, PolicySet } from '#gateway/policy/policy-set.ts';
import type { Path, Report } from '#gateway/policy/problems.ts';
import type { ReferencedFiles } from '#gateway/policy/referenced-files.ts';
import type { Route } from '#gateway/policy/route.ts';

/**
 * Every key has these properties. The schema is plain JSON Schema without TypeBox's builder, which would cost 12 MB.
 *
 * @template S the schema
 * @template D the default; undefined if there is none
 * @template V what the value is read into
 * @template P the place of the key
 */
export interface Key<S, D, V, P> {
  /** Its description is the fix in error messages, and the text in the documentation. */
  readonly schema: S & { readonly description: string };
  readonly default?: D;
  /** The default in words, if there is no `default`; unless given, `required` or `none`. */
  readonly without?: string;
  /** Further sentences of the documentation, in Markdown. */
  readonly more?: string;
  /** The heading that the key links to in the documentation. */
  readonly see?: string;
  /**
   * Reads the value into the property of the policy, or of the file, that has the name of the key. The loader reads
   * keys without it together with others.
   */
  read?(value: XStatic<S> | D, place: P): V;
}

/** The row of a policy in which a key stands. */
export interface RowPlace {
  /** Name of the counter of the row. With `limits`, the names of the counters begin with it. */
  readonly bucket: string;
  /** null if the identifier has a mistake. */
  readonly identifier: Identifier | null;
  /** The identifier of the row. An entry of `limits` can have another one. */
  readonly rowIdentifier: Identifier | null;
  /** Returns another identifier of the file. A mistake is reported at this key. */
  identifierNamed(name: string, key: string): SimpleIdentifier | null;
  /** null if it has a mistake. */
  readonly route: Route | null;
  readonly ignoreCase: boolean;
  readonly isInFlight: boolean;
  /** How much clients without an override can use at once. */
  readonly capacity: number;
  /** Whether it is a limit for a group of clients. */
  readonly isForGroup: boolean;
  /** Reports a mistake. The path begins behind the key. */
  readonly report: Report;
}

export type Warning = readonly [message: string, fix: string, point?: 'key'];

export interface PolicyKey<S, D, V> extends Key<S, D, V, RowPlace> {
  /**
   * The value for counters: policies that share a bucket must have the same. A key without it means nothing to counters.
   */
  counted?(policy: LoadedPolicy): unknown;
  /** Name of that value in messages, if it is not the key. */
  readonly countedAs?: string;
  /** Warns of a valid value that is probably a mistake. */
  warn?(policy: LoadedPolicy, file: PolicySet): Warning | null;
  /** Adds a remark to the explanation of a policy that applies. @param canBeRegular whether its client ever can */
  explain?(policy: LoadedPolicy, canBeRegular: boolean): string | null;
}

/** Lets the compiler infer the types of a row, and check its functions against its schema. */
export function policyKey<const S, const D extends XStatic<S> | undefined = undefined, V = never>(
  key: PolicyKey<S, D, V>,
): PolicyKey<S, D, V> {
  return key;
}

/** Every row has these properties, and some code needs no more. */
export type AnyKey = Omit<Key<object, unknown, unknown, never>, 'read'>;

/** Any row of a policy, for code that treats all rows alike. */
export type AnyPolicyKey = AnyKey &
  Pick<PolicyKey<object, unknown, unknown>, 'counted' | 'countedAs' | 'warn' | 'explain'> & {
    read?(value: never, place: RowPlace): unknown;
  };

/** The file in which a key stands. */
export interface FilePlace {
  readonly ignoreCase: boolean;
  readonly referenced: ReferencedFiles;
  /** Reports a mistake. The path begins behind the key. */
  readonly report: Report;
}

/** A key at the top of the file, of an identifier or of a test. */
export function fileKey<const S, const D extends XStatic<S> | undefined = undefined, V = never>(
  key: Key<S, D, V, FilePlace>,
): Key<S, D, V, FilePlace> {
  return key;
}

type Table = Readonly<Record<string, AnyKey>>;

type Reading<K> = K extends { read?: ((...read: never[]) => infer V) | undefined } ? V : never;

/** The keys with a reader are read into this, by their names. */
export type Readings<T> = {
  readonly [K in keyof T as Reading<T[K]> extends never ? never : K]: Reading<T[K]>;
};

/** @param here path of the object with the keys */
export function readKeys<T extends Table, P extends { readonly report: Report }>(
  table: T & Readonly<Record<string, { read?(value: never, place: P): unknown }>>,
  values: Readonly<Record<string, unknown>>,
  here: Path,
  place: P,
): Readings<T> {
  const readings: Record<string, unknown> = {};
  for (const [name, key] of Object.entries(table))
    if (key.read !== undefined)
      readings[name] = key.read((values[name] ?? key.default) as never, {
        ...place,
        report: (path, ...mistake) => place.report([...here, name, ...path], ...mistake),
      });
  return readings as Readings<T>;
}

/** The schemas of a table, as `properties` of an object. */
export function propertiesOf<T extends Table>(table: T): { readonly [K in keyof T]: T[K]['schema'] } {
  return Object.fromEntries(Object.entries(table).map(([name, { schema }]) => [name, schema])) as {
    [K in keyof T]: T[K]['schema'];
  };
}
