/**
 * The caller is the sender of a request: the counted address, in each form that policies need. All requests of a
 * connection have the same caller, except behind a trusted proxy, where each request names its own client.
 */
import type { RequestOrigin } from '#gateway/http/request-origin.ts';
import type { Identity } from '#gateway/identity/digest.ts';
import type { AddressIdentifier } from '#gateway/identity/identifier.ts';
import type { Cover } from '#gateway/policy/match.ts';
import { ClientAddress, type ProxyTrust } from '#shared/client-address.ts';
import type { ChargedTo } from './charged-to.ts';
import type { PolicyTable } from './policy-table.ts';

/** The form of the address that is charged for unproven credentials, and that logs and records contain. */
const ADDRESS: AddressIdentifier = { name: 'address', kind: 'address', ipv6Prefix: 64 };

export class Caller {
  readonly origin: RequestOrigin;
  readonly address: ClientAddress;
  readonly table: PolicyTable;
  /** Charges of earlier requests, which the next one can reuse. null if the next request may be of another client. */
  readonly charges: Map<Cover, ChargedTo> | null;
  /** Identities of the address, by length of the IPv6 prefix. */
  readonly #identities = new Map<number, Identity>();

  constructor(origin: RequestOrigin, address: ClientAddress, table: PolicyTable) {
    this.origin = origin;
    this.address = address;
    this.table = table;
    this.charges = origin.trusted ? null : new Map();
  }

  identity(identifier: AddressIdentifier = ADDRESS): Identity {
    const { ipv6Prefix } = identifier;
    let identity = this.#identities.get(ipv6Prefix);
    if (identity === undefined) {
      identity = this.table.digester.identify(identifier, this.address.counted(ipv6Prefix));
      this.#identities.set(ipv6Prefix, identity);
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
    if (known?.table === table) return known;
    const address = new ClientAddress(origin.peer, forwardedFor, this.#trust);
    const caller = new Caller(origin, address, table);
    if (!origin.trusted) this.#known.set(origin, caller);
    else if (!address.isReadable) this.#onUntrustedChain(origin.peer);
    return caller;
  }
}
