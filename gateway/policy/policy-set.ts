/** A policy file as it was loaded. The limiter sees its policies only as `Policy`. */
import type { Priority } from '#gateway/bounds/priority.ts';
import type { SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { Millis } from '#shared/clock.ts';
import type { ClientTable } from './clients.ts';
import type { Conditions } from './condition.ts';
import type { Lists } from './lists.ts';
import type { PageTemplate } from './page-template.ts';
import type { Policy } from './policy.ts';
import type { Path } from './problems.ts';
import type { ReferencedFiles } from './referenced-files.ts';
import type { HostRoute, Route } from './route.ts';

/** A policy with what the limiter does not need: where it applies, and where it is written. */
export interface LoadedPolicy extends Policy, Conditions {
  /** Path of the policy in the file: of a row, or of an entry of its `limits`. */
  readonly at: Path;
  readonly route: Route;
  /** Priority of requests; null if the policy does not set it. */
  readonly priority: Priority | null;
}

/** Whether the application is protected from more concurrent requests than it can handle. */
export type Protect = 'on' | 'shadow';

/** Stands for every origin. */
export const ANY_ORIGIN = '*';

/** An entry of `replies: cors`. */
export interface OriginRule {
  /** The origin as browsers send it, or `*` for all. */
  readonly origin: string;
  /** null for all routes. */
  readonly route: Route | null;
  /** Whether pages may read replies to requests with cookies. */
  readonly credentials: boolean;
}

export interface PolicyTest {
  readonly name: string;
  readonly line: number;
  readonly method: string;
  readonly target: string;
  readonly rawHeaders: readonly string[];
  /** Bodies of the requests, used in turn. */
  readonly bodies: readonly string[];
  /** Addresses of the client, used in turn. */
  readonly from: readonly string[];
  readonly times: number;
  readonly reply: number;
  /** Headers of the application's replies, alternating names and values. */
  readonly replyHeaders: readonly string[];
  /** Length of the body of the replies; null if it is not given. */
  readonly replyBytes: number | null;
  readonly at: Millis;
  /** Whether the clients were here on enough days to be regulars. */
  readonly isRegular: boolean;
  /** Plan that a trusted proxy names; null if none. */
  readonly plan: string | null;
  readonly expect: {
    /** Names of all policies that apply. null, here and below, means that it is not checked. */
    readonly policies: readonly string[] | null;
    readonly allowed: number | null;
    readonly marked: readonly string[] | null;
    readonly status: number | null;
    readonly priority: Priority | null;
    readonly headers: ReadonlyMap<string, string>;
  };
}

export interface PolicySet {
  readonly file: string;
  /** First characters of a SHA-256 of the file and of the files that it names. */
  readonly version: string;
  readonly policies: readonly LoadedPolicy[];
  readonly exclude: readonly HostRoute[];
  /** Whether all routes are matched without regard to case, as in the application. */
  readonly ignoreCase: boolean;
  /** Mode of `protect`; null if it is not set. */
  readonly protect: Protect | null;
  /** Lower-case name of the header in which trusted proxies name the plan of a client; null if none. */
  readonly planHeader: string | null;
  /** The claim in which signed tokens name the plan of a client; null if none. */
  readonly planClaim: string | null;
  /** Plans of clients; null if the file names none. */
  readonly plans: ClientTable<string> | null;
  /** Whether some overrides name programs by their User-Agent. */
  readonly hasProgramLimits: boolean;
  /** Identifiers that do not depend on a route. */
  readonly identifiers: readonly SimpleIdentifier[];
  readonly lists: Lists | null;
  readonly listFiles: Pick<ReferencedFiles, 'sizes' | 'notes'>;
  /** Replaces the gateway's page for browsers; null if there is none. */
  readonly page: PageTemplate | null;
  /** The origins whose pages may read the gateway's own replies; null if the file does not say. */
  readonly origins: readonly OriginRule[] | null;
  readonly tests: readonly PolicyTest[];
}

/** Whether anything in the file depends on the host of a request. */
export function usesHosts({ policies, exclude, lists }: PolicySet): boolean {
  return (
    policies.some(({ hosts }) => hosts !== null) ||
    exclude.some(({ hosts }) => hosts !== null) ||
    lists?.routes.some(([{ hosts }]) => hosts !== null) === true ||
    lists?.clients.some(({ hosts }) => hosts !== null) === true
  );
}
