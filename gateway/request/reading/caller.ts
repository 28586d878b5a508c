/**
 * The caller is the sender of a request: the counted address, in each form that policies need. All requests of a
 * connection have the same caller, except behind a trusted proxy, where each request names its own client.
 */
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { AddressIdentifier, NetworkIdentifier } from '#gateway/identity/identifier.ts';
import type { Cover } from '#gateway/policy/match.ts';
import { ClientAddress, type ProxyTrust } from '#shared/client-address.ts';
import type { PolicyTable } from './policy-table.ts';
import type { ChargedTo } from './reading.ts';

/** The form of the address that is charged for unproven credentials, and that logs and records contain. */
const ADDRESS: AddressIdentifier = { name: 'address', kind: 'address', ipv6Prefix: 64 };

/** The parts of a caller that a reading asks for. A log does not have the others. */
export interface Sender {
  readonly origin: Pick<RequestOrigin, 'trusted'>;
  readonly address: Pick<ClientAddress, 'bytes'>;
  readonly table: PolicyTable;
  /** Charges of earlier requests, which the next one can reuse. null if the next request may be of another client. */
  readonly charges: Map<Cover, ChargedTo> | null;
  identity(identifier?: AddressIdentifier): Identity;
}

/** @returns the network of a caller; null if it is in none */
export function networkOf({ address, table }: Sender, identifier: NetworkIdentifier): Identity | null {
  const name = address.bytes === null ? undefined : identifier.networks.find(address.bytes);
  return name === undefined ? null : table.digester.identify(identifier, name);
}

export class Caller implements Sender {
  readonly origin: RequestOrigin;
  readonly address: ClientAddress;
  readonly table: PolicyTable;
  readonly charges: Map<Cover, ChargedTo> | null;
  /** Identities of the address, by a number made from the lengths of both prefixes. */
  readonly #identities = new Map<number, Identity>();

  constructor(origin: RequestOrigin, address: ClientAddress, table: PolicyTable) {
    this.origin = origin;
    this.address = address;
    this.table = table;
    this.charges = origin.trusted ? null : new Map();
  }

  identity(identifier: AddressIdentifier = ADDRESS): Identity {
    const { ipv6Prefix, ipv4Prefix = 32 } = identifier;
    const key = ipv6Prefix * 64 + ipv4Prefix;
    let identity = this.#identities.get(key);
    if (identity === undefined) {
      identity = this.table.digester.identify(identifier, this.address.counted(ipv6Prefix, ipv4Prefix));
      this.#identities.set(key, identity);
    }
    return identity;
  }
}

export class Callers {
  readonly #trust: ProxyTrust;
  readonly #onUntrustedChain: (peer: string) => void;
  /** Callers by connection. An entry disappears together with its connection. */
  readonly #known = new WeakMap<RequestOrigin, Caller>();

  /** @param onUntrustedChain called if a trusted proxy sent an unreadable X-Forwarded-For chain */
  constructor(trust: ProxyTrust, onUntrustedChain: (peer: string) => void) {
    this.#trust = trust;
    this.#onUntrustedChain = onUntrustedChain;
  }

  /** @param forwardedFor all values of X-Forwarded-For, joined; '' if there is none */
  of(origin: RequestOrigin, forwardedFor: string, table: PolicyTable): Caller {
    const known = this.#known.get(origin);
    // A peer that is trusted since its file changed has no caller of its own any more.
    if (known?.table === table && !origin.trusted) return known;
    const address = new ClientAddress(origin.peer, forwardedFor, this.#trust);
    const caller = new Caller(origin, address, table);
    if (!origin.trusted) this.#known.set(origin, caller);
    else if (!address.isReadable) this.#onUntrustedChain(origin.peer);
    return caller;
  }
}

/** Describes where the gateway read a client address. */
export function addressSource({ origin, address }: Caller, trust: ProxyTrust): string {
  if (trust.kind === 'none' || !origin.trusted) return origin.isIntroduced ? 'PROXY header' : 'socket';
  if (!address.isReadable) return 'unreadable X-Forwarded-For';
  if (trust.kind === 'cidrs') return 'X-Forwarded-For, past trusted networks';
  return `X-Forwarded-For, ${trust.hops} trusted ${trust.hops === 1 ? 'proxy' : 'proxies'}`;
}
