/** Plans of clients, from a file that the policy file names. */
import type { NetworkTable } from './network-table.ts';

export interface Plans {
  readonly digests: ReadonlyMap<string, string>;
  readonly networks: NetworkTable<string>;
  readonly size: number;
  /** First characters of a hash of the file. */
  readonly version: string;
}

/**
 * Returns the plan of a client. A digest wins over a network, and a longer prefix over a shorter one.
 *
 * @param digests all digests that identify the client
 * @param address bytes of the client's address; null if unknown
 */
export function planIn(
  { digests: named, networks }: Plans,
  digests: Iterable<string>,
  address: readonly number[] | null,
): string | null {
  for (const digest of digests) {
    const plan = named.get(digest);
    if (plan !== undefined) return plan;
  }
  return (address === null ? undefined : networks.find(address)) ?? null;
}
