/** The programs that the gateway is compared with: their settings and their properties. */
import type { Processes, Started } from '#bench/run/processes.ts';
import type { Package } from '#bench/run/programs.ts';

/** A limit that lets everything through. It fits into 32 bits, as HAProxy demands. */
export const HIGH_LIMIT = 1_000_000_000;
export const WINDOW_SECONDS = 60;

export interface Place {
  readonly processes: Processes;
  readonly port: number;
  readonly upstreamPort: number;
}

export interface Launch extends Place {
  /** A Redis of its own. */
  readonly redisPort: number;
  /** Distinct API keys that will be used. 0: none. */
  readonly keys: number;
  /** Requests a minute of one API key or, without a key, of one address. Only paths below `/api/` have limits. */
  readonly limit: number;
  /** The number of limits that a request counts against. */
  readonly limits: number;
}

export interface Peer {
  readonly name: string;
  readonly label: string;
  readonly needs: readonly Package[];
  /** Whether it counts every admitted request in Redis. If it needs one, it gets one of its own. */
  readonly countsInRedis?: boolean;
  /** null: the upstream itself. */
  readonly start: ((launch: Launch) => Promise<Started>) | null;
}

export const DIRECT: Peer = { name: 'direct', label: 'the upstream itself', needs: [], start: null };

/** Bounds for one address in the abuse bench, as the documentation of these programs suggests. Its visitor needs 40 requests a second. */
export const BOUNDS = { requestsPerSecond: 50, burst: 100, connections: 100 };

export interface BoundedPlace extends Place {
  /** The address of a proxy whose X-Forwarded-For is trusted. */
  readonly trusted: string | null;
}
