/** The sender of a logged request: its key if the log has one, otherwise its address. */
import { presentedValues } from '#gateway/identity/credential.ts';
import { Digester, type Identity, identityOf } from '#gateway/identity/digest.ts';
import type { CredentialIdentifier, SimpleIdentifier } from '#gateway/identity/identifier.ts';
import type { PolicySet } from '#gateway/policy/policy-set.ts';
import type {
  LoggedDigests,
  LoggedRequest,
  LoggedSender,
} from '#gateway/workbench/replay/formats/logged-request.ts';
import { clientAddress, type ProxyTrust, UNTRUSTED } from '#shared/client-address.ts';

export interface Sender {
  /** Name of the identifier. */
  readonly identifier: string;
  readonly identity: Identity;
}

const ADDRESS = 'ip';
const KEY = 'key';

const IP: SimpleIdentifier = { name: ADDRESS, kind: 'address', ipv6Prefix: 64 };
const NO_TRUST: ProxyTrust = { kind: 'none' };
const ADDRESSES_MAX = 16_384;

export class Senders {
  readonly #trust: ProxyTrust;
  readonly #credentials: readonly CredentialIdentifier[];
  readonly #digester = new Digester('');
  readonly #addresses = new Map<string, Sender>();

  /** @param set its identifiers say which header fields present a key */
  constructor(set: PolicySet, trust: ProxyTrust) {
    this.#trust = trust;
    this.#credentials = set.identifiers.filter((identifier) => identifier.kind === 'credential');
  }

  /** @returns null if the line does not have it */
  of({ digests, sender, target }: LoggedRequest): Sender | null {
    if (digests !== null) return fromDigests(digests);
    return sender === null ? null : (this.#key(sender, target) ?? this.#address(sender));
  }

  #key({ headers }: LoggedSender, target: string): Sender | null {
    for (const identifier of this.#credentials) {
      const [value, another] = presentedValues(headers, identifier.sources, target);
      if (value === undefined || another !== undefined) continue;
      return { identifier: identifier.name, identity: this.#digester.identify(identifier, value) };
    }
    return null;
  }

  #address({ peer, client, forwardedFor }: LoggedSender): Sender | null {
    const isDirect = this.#trust.kind === 'none' || forwardedFor === '';
    const text = isDirect ? client : `${peer} ${forwardedFor}`;
    let known = this.#addresses.get(text);
    if (known === undefined) {
      const address = isDirect
        ? clientAddress(client, '', NO_TRUST)
        : clientAddress(peer, forwardedFor, this.#trust);
      // Many clients may be behind an unreadable chain, so no limit can be derived from it.
      if (address === UNTRUSTED) return null;
      known = { identifier: ADDRESS, identity: this.#digester.identify(IP, address) };
      if (this.#addresses.size >= ADDRESSES_MAX) this.#addresses.clear();
      this.#addresses.set(Buffer.from(text, 'latin1').toString('latin1'), known);
    }
    return known;
  }
}

/** Returns the first digest that is not the address's, which is that of a credential. */
function fromDigests({ identities, address }: LoggedDigests): Sender | null {
  for (let i = 0; i < identities.length; i += 2) {
    const digest = identities[i + 1] ?? '';
    if (digest !== address) return { identifier: identities[i] ?? KEY, identity: identityOf(digest) };
  }
  return address === null ? null : { identifier: ADDRESS, identity: identityOf(address) };
}
