/** Reads GATEWAY_UPGRADES: the protocols that a client may switch its connection to, and how many connections may. */

export interface Upgrades {
  /** In lower case, because case does not matter in names of protocols (RFC 9110 16.7). */
  readonly protocols: readonly string[];
  /** Maximum number of connections that have switched. */
  readonly total: number;
}

export const DEFAULT_UPGRADES: Upgrades = { protocols: ['websocket'], total: 1024 };

const TOTAL_MAX = 1_000_000;
/** A name, and possibly a version (RFC 9110 7.8). */
const PROTOCOL = /^[0-9a-z][!#$%&'*+.^_`|~0-9a-z-]*(?:\/[!#$%&'*+.^_`|~0-9a-z-]+)?$/i;
/** Over these, clients send further requests, which the gateway would neither see nor count. */
const CARRIES_REQUESTS = /^(?:h[23][^/]*|http|tls)(?:\/|$)/i;

/** @throws Error that says what is wrong */
export function parseUpgrades(text: string): Upgrades {
  const items = text
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');
  const names = items.filter((item) => !/^\d+$/.test(item));
  const totals = items.filter((item) => !names.includes(item)).map(Number);
  for (const name of names) {
    if (!PROTOCOL.test(name))
      throw new Error(
        `"${name}" is not a protocol, such as websocket or SPDY/3.1; separate several by commas`,
      );
    if (CARRIES_REQUESTS.test(name))
      throw new Error(`"${name}" would carry requests past the limits; leave it out`);
  }
  const [total = DEFAULT_UPGRADES.total, ...others] = totals;
  if (others.length > 0 || total < 1 || total > TOTAL_MAX)
    throw new Error(
      `the maximum of such connections must be one whole number from 1 to ${TOTAL_MAX}, or absent`,
    );
  const protocols = names.map((name) => name.toLowerCase());
  return { protocols: protocols.length === 0 ? DEFAULT_UPGRADES.protocols : protocols, total };
}
