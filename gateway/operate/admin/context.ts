/** Everything that the routes of the admin API need. */
import type { FastifyRequest } from 'fastify';
import type { Logger } from 'pino';
import type { RefusedAddresses } from '#gateway/addresses/addresses.ts';
import type { Control } from '#gateway/bans/control.ts';
import type { BoundSettings } from '#gateway/bounds/bounds.ts';
import type { Family } from '#gateway/observe/metrics/exposition.ts';
import type { Ranked } from '#gateway/observe/metrics/ranking.ts';
import type { CertificateReport } from '#gateway/part/part.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type { ProcessReport } from '#gateway/process/supervisor.ts';
import type { DecisionRecord } from '#gateway/refusals/decision-record.ts';
import type { ProxyTrust } from '#shared/client-address.ts';
import type { Clock, Millis } from '#shared/clock.ts';
import type { GuardOptions } from './guard.ts';
import type { Sessions } from './sessions.ts';

/** A running gateway, with one process or with several. */
export interface RunningGateway {
  readonly control: Control;
  /** The policies as loaded from the file, without the shadow modes that operators have set. */
  readonly policies: () => PolicySet;
  readonly policyText: () => string;
  /** Why the current file is not in use; null if it is. */
  readonly policyRefusal: () => string | null;
  /** Whether it accepts requests. false while it drains. */
  readonly ready: () => boolean;
  /** Metrics since the start, also of processes that have ended. */
  readonly families: () => Promise<readonly (readonly Family[])[]>;
  /** Reports of the processes that answer in time. */
  readonly processes: () => Promise<readonly ProcessReport[]>;
  /** @throws if the store is unavailable */
  readonly findDecision: (id: string) => Promise<DecisionRecord | null>;
  /** Lists refusals, newest first, see DecisionStore. @throws if the store is unavailable */
  readonly listDecisions: (before: string | null, count: number) => Promise<readonly DecisionRecord[]>;
  /** Tells the other gateways which clients this one denied most, see DecisionStore. @throws as above */
  readonly exchangeDenied: (own: readonly Ranked[]) => Promise<readonly (readonly Ranked[])[]>;
}

/** The running gateway and its surroundings. */
export interface AdminGateway extends RunningGateway {
  readonly storeKind: 'redis' | 'memory';
  readonly log: Logger;
  readonly clock: Clock;
  readonly trust: ProxyTrust;
  /** Returns a new secret of at least 32 random bytes. */
  readonly newSecret: () => string;
  /** Data that only doctor needs. */
  readonly doctor: {
    /** `upstream` is an origin, without a path. */
    readonly config: { readonly upstream: string; readonly bounds: BoundSettings };
    /** Reads the certificate on the disk; null if the public listener uses plain HTTP. */
    readonly certificate: ((now: Millis) => CertificateReport) | null;
    readonly readPolicyFile: (file: string) => string;
    /** Returns how many file descriptors a process may have open; null if the system does not report it. */
    readonly openFilesMax: () => number | null;
    /** Version of this gateway; `nodeVersion` is that of Node.js. */
    readonly version: string;
    readonly nodeVersion: string;
    readonly publicPort: () => number;
  };
  /** Addresses of refused clients; null if operators may not see them. */
  readonly addresses: RefusedAddresses | null;
}

export type AdminApiOptions = AdminGateway & GuardOptions;

export interface AdminContext extends AdminApiOptions {
  readonly sessions: Sessions;
  /** Logs a change with its author. `what` are further fields of the line. */
  readonly audit: (request: FastifyRequest, change: string, what: object) => void;
}
