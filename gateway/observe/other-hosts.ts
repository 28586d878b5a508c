/** Notices hosts of requests that no policy names, such as that of an application that was added without limits. */
import { isIPv4 } from 'node:net';
import type { LoadedPolicy } from '#gateway/policy/policy-set.ts';

/** Clients choose the host, so only the first ones are kept. */
export const OTHER_HOSTS_MAX = 10;
/** Maximum number of hosts that are remembered as named, because a wildcard names any number of them. */
const NAMED_MAX = 100;
const ANY_REQUEST = { method: 'GET', paths: [], target: '', rawHeaders: [] } as const;

export class OtherHosts {
  readonly #conditions: readonly LoadedPolicy['hosts'][];
  readonly #others = new Set<string>();
  readonly #named = new Set<string>();

  constructor(policies: readonly Pick<LoadedPolicy, 'hosts'>[]) {
    this.#conditions = policies.map(({ hosts }) => hosts).filter((hosts) => hosts !== null);
  }

  get list(): readonly string[] {
    return [...this.#others];
  }

  /**
   * Checks of health use addresses, and so does `doctor` itself, so they are not reported.
   *
   * @param host canonical host; empty if nothing in the policy file depends on it
   */
  note(host: string): void {
    if (host === '' || this.#conditions.length === 0 || this.#named.has(host)) return;
    if (this.#others.size >= OTHER_HOSTS_MAX || this.#others.has(host)) return;
    const isNamed = this.#conditions.some((hosts) => hosts?.holds({ ...ANY_REQUEST, host }));
    if (!isNamed && !isAddress(host)) this.#others.add(host);
    else if (this.#named.size < NAMED_MAX) this.#named.add(host);
  }
}

function isAddress(host: string): boolean {
  return host === 'localhost' || host.startsWith('[') || isIPv4(host);
}
