/**
 * An optional part of the gateway: something that can be left out, and the rest still limits and forwards requests.
 * gateway/parts.ts lists all parts in order. To remove one, delete its folder and its lines in that file.
 *
 * `read` takes the settings of a part from the environment; null means that the part is off. A part that is on has a few
 * verbs, and most parts need only the first:
 *
 *  - `open`: starts the part in a process that serves requests, and fills slots of the request path
 *  - `supervise`: does what the part needs in the supervisor of several workers
 *  - `operate`: starts what operators talk to, once for all workers
 *
 * An opened part then has the verbs of life.ts: `start`, `reload`, `samples` for metrics, `drain` and `close`.
 * listen/proxy-protocol/part.ts is a short example.
 */
import type { Logger } from 'pino';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { ReadReferenced } from '#gateway/policy/referenced-files.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { SettingsReader, Variable } from '#shared/configuration.ts';
import type { Life } from './life.ts';

/** Settings of the gateway that parts use, and those that parts add to while they are read in their order. */
export interface Gathered {
  readonly trust: ProxyTrust;
  /** Whether another gateway may listen on the same ports. */
  readonly reusePort: boolean;
  /** Ports of the listeners that were read so far. */
  readonly ports: Set<number>;
  readonly warnings: string[];
  scheme: 'http' | 'https';
  /** Reads the certificate on the disk, for doctor; null without one. */
  certificate: ((now: Millis) => CertificateReport) | null;
}

export interface CertificateReport {
  readonly file: string;
  /** Why the files cannot be used; null if they can. */
  readonly problem: string | null;
  /** null with a problem */
  readonly daysLeft: number | null;
}

export interface Surroundings {
  readonly gathered: Gathered;
  readonly clock: Clock;
  readonly wallClock: Clock;
  /** Name of this process among all that share the store. */
  readonly replica: string;
  readonly log: Logger;
}

/** Loads a policy file. @throws PolicyFileError */
export type LoadPolicies = (text: string, file: string, readReferenced?: ReadReferenced) => PolicySet;

export interface OpenPart<Slots extends object = object, Core = never> extends Life<Core> {
  /** The request path uses these objects of the part. */
  readonly slots?: Slots;
}

/** Operators talk to this listener. */
export interface Operated {
  close(): Promise<void>;
  /** A phrase for the line that says that the gateway is ready. */
  readonly ready: string;
}

type Opened<Slots extends object, Core> = OpenPart<Slots, Core> | Promise<OpenPart<Slots, Core>>;

/**
 * A part that is on.
 *
 * @typeParam Slots what the part adds to the request path
 * @typeParam Core what `start` needs of the running core
 * @typeParam Running what `operate` needs of the running gateway
 */
export interface SwitchedOn<Slots extends object = object, Core = unknown, Running = unknown> {
  /** Replaces the loader of the policy file, to refuse more. */
  loader?(): Promise<LoadPolicies>;
  open?(surroundings: Surroundings): Opened<Slots, Core>;
  supervise?(surroundings: Surroundings): Opened<Slots, Core>;
  operate?(running: Running): Promise<Operated>;
  /** A phrase for the line that says that the gateway is ready. */
  ready?(): string;
}

export interface OptionalPart<On, Name extends string = string> {
  readonly variables: readonly (Variable & { readonly name: Name })[];
  /** @returns null if the part is off */
  read(read: SettingsReader<Name>, gathered: Gathered): On | null;
}

/** Lets the compiler check the names of the settings that a part reads. */
export function optionalPart<const Name extends string, On>(part: OptionalPart<On, Name>): typeof part {
  return part;
}
