import type { Processes, Started } from '../../processes.ts';
import type { AbuseScenario, TargetName } from '../scenario.ts';

export interface AbuseLaunch {
  readonly processes: Processes;
  readonly scenario: AbuseScenario;
  readonly port: number;
  readonly upstreamPort: number;
  /** A Redis of its own, where it has one. */
  readonly redisPort: number;
}

export interface AbuseTarget {
  readonly name: TargetName;
  readonly label: string;
  readonly usesRedis: boolean;
  /** Ends it at once, with all of its processes: what hangs after an attack is not waited for. */
  readonly stopSignal: NodeJS.Signals;
  /** null when it can run here, else one line that says what to install. */
  missing(): string | null;
  start(launch: AbuseLaunch): Promise<Started>;
}

/** What the peers grant one address, after the examples in their own documentation; the victim needs 40 requests a second. */
export const REQUESTS_PER_SECOND = 50;
export const BURST = 100;
export const CONNECTIONS_PER_ADDRESS = 100;
