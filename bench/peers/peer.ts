/** The programs with which the gateway is compared: their settings and properties. */
import type { Scenario } from '#bench/costs/scenarios.ts';
import type { Processes } from '#bench/run/processes.ts';
import type { Package } from '#bench/run/programs.ts';
import type { Started } from '#test/support/process.ts';

/** A limit that is never reached. */
export const HIGH_LIMIT = 1_000_000_000;
export const WINDOW_SECONDS = 60;

export interface Place {
  readonly processes: Processes;
  readonly port: number;
  readonly upstreamPort: number;
}

export interface Launch extends Place {
  /** Port of a Redis that only this peer uses. */
  readonly redisPort: number;
  /** Requests a minute for each API key or, without a key, for each address. Only paths below `/api/` have limits. */
  readonly limit: number;
  /** The number of limits that a request counts against. */
  readonly limits: number;
  /** Additional variables of its environment. */
  readonly env?: Readonly<Record<string, string>>;
}

export interface Peer {
  readonly name: string;
  readonly label: string;
  readonly needs: readonly Package[];
  /** Whether the peer counts every admitted request in Redis. */
  readonly countsInRedis?: boolean;
  /** How the requests to this peer differ from those of the scenario. */
  readonly differences?: Partial<Scenario>;
  readonly start: (launch: Launch) => Promise<Started>;
  /** Says at the end why the figures are worth nothing; null if they are right. */
  readonly flaw?: () => string | null;
}
