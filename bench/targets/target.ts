import type { Processes, Started } from '../processes.ts';
import type { PeerName, Scenario } from '../scenarios.ts';

/** What every target is given. */
export interface Launch {
  readonly processes: Processes;
  readonly scenario: Scenario;
  readonly port: number;
  readonly upstreamPort: number;
  /** A Redis of its own. */
  readonly redisPort: number;
  /** Where configuration files go. */
  readonly directory: string;
}

export interface Peer {
  readonly name: PeerName;
  readonly label: string;
  readonly usesRedis: boolean;
  /** Every admitted request is counted there. */
  readonly countsInRedis: boolean;
  /** null when it can run here, else one line that says what to install. */
  missing(): string | null;
  start(launch: Launch): Promise<Started>;
}
